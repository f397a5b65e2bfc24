// SPDX-License-Identifier: Apache-2.0
// Cumulative sums along the middle of three axes.
#include "cuda_ops/kernels/cumulative.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

CaseResult RunCumulativeSum(CumulativeSumArguments a, bool in_place) {
  const int64_t count = a.outer * a.length * a.inner;
  Array x = Uniform(a.dtype, count, 1, -4, 8);
  const std::vector<double> values = x.Values();
  CaseResult result;
  Array& y = result.outputs.emplace_back(in_place ? Uniform(a.dtype, count, 1, -4, 8) : Array(a.dtype, count));
  a.x = in_place ? y.data() : x.data();
  a.y = y.data();
  LaunchCumulativeSum(a, nullptr);
  auto& expected = result.expected.emplace_back(static_cast<size_t>(count));
  for (int64_t line = 0; line < a.outer * a.inner; ++line) {
    double sum = 0;
    for (int64_t i = 0; i < a.length; ++i) {
      const int64_t place = a.reverse ? a.length - 1 - i : i;
      const auto at = static_cast<size_t>((line / a.inner * a.length + place) * a.inner + line % a.inner);
      const double before = sum;
      sum += values[at];
      expected[at] = a.exclusive ? before : sum;
    }
  }
  result.tolerance = 1e-9;
  return result;
}

}  // namespace

void AddCumulativeCases(DeviceCases& cases) {
  for (const DType dtype :
       {DType::kFloat, DType::kBfloat16, DType::kFloat16, DType::kDouble, DType::kInt32, DType::kInt64}) {
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        for (const CumulativeSumArguments& shape : {CumulativeSumArguments{nullptr, nullptr, 1, 1, 1},
                                                    {nullptr, nullptr, 9, 33, 1},
                                                    {nullptr, nullptr, 2, 1501, 3},
                                                    {nullptr, nullptr, 3, 37, 35}}) {
          CumulativeSumArguments a = shape;
          a.exclusive = exclusive;
          a.reverse = reverse;
          a.dtype = dtype;
          const bool in_place = exclusive != reverse;
          cases.push_back(
              {"CumulativeSum " + std::string(NameOf(dtype)), [=] { return RunCumulativeSum(a, in_place); }});
        }
      }
    }
  }
}

}  // namespace onnxtrain
