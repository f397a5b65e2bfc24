// SPDX-License-Identifier: Apache-2.0
// Reading nodes is apart from the operators' rules: shared objects of backends do the one and must not carry the other.
#include "graph/ops/op_rules.h"

namespace onnxtrain {

StatusOr<std::vector<int64_t>> ConstantInts(const Node& node, size_t index) {
  const Value* input = node.input(index);
  if (input == nullptr || input->constant() == nullptr) {
    return InvalidModelError("input " + std::to_string(index) + " of " + node.Describe() +
                             " must be a constant, so that shapes are known before the run");
  }
  std::vector<int64_t> values;
  for (int64_t i = 0; i < input->type().elements(); ++i) values.push_back(input->constant()->IntAt(i));
  return values;
}

}  // namespace onnxtrain
