// SPDX-License-Identifier: Apache-2.0
// Reductions of the middle of three axes.
#include <algorithm>
#include <array>
#include <cmath>

#include "cuda_ops/kernels/reduction.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

std::string Named(const std::string& name, DType dtype) { return name + " " + std::string(NameOf(dtype)); }

// x [outer, length, inner] is reduced along its middle.
CaseResult RunReduction(ReduceFunction function, DType dtype, DType y_dtype, int64_t outer, int64_t length,
                        int64_t inner) {
  Array x = Uniform(dtype, outer * length * inner, 1, function == ReduceFunction::kLogSum ? 0.5 : -1, 2);
  CaseResult result;
  Array& y = result.outputs.emplace_back(y_dtype, outer * inner);
  ReductionArguments a;
  a.x = x.data();
  a.y = y.data();
  MakeStridedLoop<1>({outer, inner}, {std::vector<int64_t>{length * inner, 1}}, {}, &a.kept);
  MakeStridedLoop<1>({length}, {std::vector<int64_t>{inner}}, {}, &a.reduced);
  a.rows = inner == 1;
  a.dtype = dtype;
  a.y_dtype = y_dtype;
  a.function = function;
  Array partial(DType::kDouble, ReductionPartials(a));
  a.partial = partial.as<double>();
  LaunchReduction(a, nullptr);
  auto& expected = result.expected.emplace_back();
  for (int64_t kept = 0; kept < outer * inner; ++kept) {
    double sum = 0, squares = 0, sizes = 0, powers = 0, largest = -INFINITY, smallest = INFINITY;
    for (int64_t i = 0; i < length; ++i) {
      const double value = x.At((kept / inner * length + i) * inner + kept % inner);
      sum += value;
      squares += value * value;
      sizes += std::fabs(value);
      powers += std::exp(value);
      largest = std::max(largest, value);
      smallest = std::min(smallest, value);
    }
    const double all[] = {sum,
                          sum / static_cast<double>(length),
                          largest,
                          smallest,
                          squares,
                          std::sqrt(squares),
                          sizes,
                          std::log(sum),
                          std::log(powers)};
    expected.push_back(all[static_cast<size_t>(function)]);
  }
  result.tolerance = 2e-6;
  return result;
}

}  // namespace

void AddReductionCases(DeviceCases& cases) {
  for (const ReduceFunction function : {ReduceFunction::kSum, ReduceFunction::kMean, ReduceFunction::kMax,
                                        ReduceFunction::kMin, ReduceFunction::kSumSquare, ReduceFunction::kL2,
                                        ReduceFunction::kL1, ReduceFunction::kLogSum, ReduceFunction::kLogSumExp}) {
    for (const DType dtype : kDeviceFloats) {
      for (const auto& [outer, length, inner] :
           std::vector<std::array<int64_t, 3>>{{9, 33, 1}, {2, 1501, 1}, {1, 37, 35}, {3, 517, 5}, {1, 1, 1}}) {
        cases.push_back(
            {Named("Reduce" + std::to_string(static_cast<int>(function)), dtype),
             [=] { return RunReduction(function, dtype, inner == 35 ? DType::kFloat : dtype, outer, length, inner); }});
      }
    }
  }
}

}  // namespace onnxtrain
