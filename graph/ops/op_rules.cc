// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/op_rules.h"

namespace onnxtrain {

std::vector<AliasRule> ViewOfInput(const Node&) { return {{AliasRule::Kind::kView, 0, 0}}; }

std::vector<AliasRule> InPlaceOfEqualTypes(const Node& node) {
  std::vector<AliasRule> rules;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const Value* input = node.input(i);
    if (input == nullptr || input->type() != node.output(0)->type()) continue;
    rules.push_back({AliasRule::Kind::kInPlace, 0, static_cast<int>(i)});
  }
  return rules;
}

StatusOr<std::vector<TensorType>> TypeOfInput0(const InferContext& context) {
  if (context.inputs.empty() || !context.inputs[0].known()) return InvalidModelError("input 0 is missing");
  return std::vector<TensorType>{context.inputs[0]};
}

StatusOr<std::vector<TensorType>> TypeOfInput1(const InferContext& context) {
  if (context.inputs.size() < 2 || !context.inputs[1].known()) return InvalidModelError("input 1 is missing");
  return std::vector<TensorType>{context.inputs[1]};
}

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

LiftFn MoveAttributeToInput(int opset, const char* attribute, size_t index) {
  return [=](LiftContext& lift) {
    if (lift.opset() < opset) lift.AttributeToInput(attribute, index);
    return OkStatus();
  };
}

}  // namespace onnxtrain
