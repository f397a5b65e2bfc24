// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/parity_cases.h"

namespace onnxtrain {
namespace {

using Cases = std::vector<ParityCase>;

Tensor Floats(Shape shape, double low = -2, double high = 2) {
  static uint64_t seed = 100000;
  return RandomTensor(DType::kFloat, std::move(shape), ++seed, low, high);
}

void AddGroupNormalizations(Cases& cases) {
  for (const auto& [x, groups] : std::vector<std::pair<Shape, int64_t>>{
           {{3, 6, 5, 7}, 2}, {{2, 6, 33, 37}, 3}, {{5, 9}, 9}, {{2, 3, 1031}, 1}, {{0, 4, 3}, 2}, {{2, 4, 0}, 2}}) {
    const Shape parameter{x[1]};
    const Attributes attributes{{"num_groups", groups}, {"epsilon", 1e-3f}};
    cases.push_back({"GroupNormalization",
                     {Fed(Floats(x)), Fed(Floats(parameter)), Fed(Floats(parameter))},
                     attributes,
                     1,
                     false,
                     2e-5});
    cases.push_back({"onnxtrain.GroupNormalizationGrad",
                     {Fed(Floats(x)), Fed(Floats(x)), Fed(Floats(parameter))},
                     attributes,
                     3,
                     false,
                     2e-4});
    if (x.size() < 3) continue;
    cases.push_back({"InstanceNormalization",
                     {Fed(Floats(x)), Fed(Floats(parameter)), Fed(Floats(parameter))},
                     {},
                     1,
                     false,
                     2e-5});
  }
}

}  // namespace

void AddImageParityCases(std::vector<ParityCase>& cases) { AddGroupNormalizations(cases); }

}  // namespace onnxtrain
