// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/conformance/parity_cases.h"
#include "tests/conformance/parity_inputs.h"

namespace onnxtrain {
namespace {

using Cases = std::vector<ParityCase>;

void AddReductions(Cases& cases) {
  for (const std::string op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL1",
                               "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"}) {
    const double low = op == "ReduceLogSum" ? 0.25 : -2;
    for (const std::vector<int64_t>& axes :
         std::vector<std::vector<int64_t>>{{0}, {1}, {2}, {0, 2}, {0, 1}, {1, 2}, {0, 1, 2}}) {
      cases.push_back({op, {Fed(Floats({5, 7, 33}, low)), Axes(axes)}, {{"keepdims", int64_t{0}}}, 1, false, 2e-5});
    }
    cases.push_back({op, {Fed(Floats({700, 3}, low)), Axes({0})}, {}, 1, false, 2e-4});
    cases.push_back({op, {Fed(Floats({2, 3000}, low)), Axes({1})}, {}, 1, false, 2e-4});
  }
  const auto infinite = [](float value) { return Fed(Tensor::FromVector<float>({1, 3}, {1, value, -INFINITY})); };
  for (const float value : {INFINITY, -INFINITY, 200.0f}) {
    cases.push_back({"ReduceLogSumExp", {infinite(value), Axes({1})}, {}});
  }
}

void AddCumulative(Cases& cases) {
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, int64_t>>{
           {{1}, 0}, {{5, 33}, -1}, {{7, 33}, 0}, {{2, 1100, 3}, 1}, {{2, 17, 37}, -2}, {{0, 4}, 1}}) {
    for (const bool exclusive : {false, true}) {
      const Attributes attributes{{"exclusive", int64_t{exclusive}}, {"reverse", int64_t{axis < 0}}};
      const OpInput along = Constant(Tensor::Scalar<int64_t>(axis));
      cases.push_back({"CumSum", {Fed(Floats(shape)), along}, attributes, 1, false, 1e-5});
      for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kDouble}) {
        cases.push_back({"CumSum", {Fed(Of(dtype, shape, -99, 99)), along}, attributes, 1, true});
      }
    }
  }
}

}  // namespace

void AddReductionParityCases(std::vector<ParityCase>& cases) {
  AddReductions(cases);
  AddCumulative(cases);
}

}  // namespace onnxtrain
