// SPDX-License-Identifier: Apache-2.0
#include "runtime/scatter_reduction.h"

#include <string>

namespace onnxtrain {

StatusOr<ScatterReduction> ScatterReductionOf(const Node& node) {
  const std::string name = node.attributes().String("reduction", "none");
  if (name == "none") return ScatterReduction::kNone;
  if (name == "add") return ScatterReduction::kAdd;
  if (name == "mul") return ScatterReduction::kMul;
  if (name == "max") return ScatterReduction::kMax;
  if (name == "min") return ScatterReduction::kMin;
  return InvalidModelError("reduction '" + name + "' of " + node.Describe() +
                           "; none, add, mul, max and min are defined");
}

}  // namespace onnxtrain
