// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/op_rules.h"

#include "graph/ops/own_op_checks.h"
#include "graph/schema_inference.h"

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

StatusOr<std::vector<TensorType>> TypeOfPointwiseGradient(const InferContext& context) {
  OwnOpChecks checks(context);
  checks.Inputs(2, 2);
  checks.Outputs(1, 1);
  checks.Attributes({{"alpha", AttributeKind::kFloat},
                     {"beta", AttributeKind::kFloat},
                     {"gamma", AttributeKind::kFloat},
                     {"approximate", AttributeKind::kString}});
  checks.Floating(0, "point");
  if (checks.ok()) checks.Type(1, "dy", context.inputs[0]);
  RETURN_IF_ERROR(checks.status());
  return std::vector<TensorType>{context.inputs[0]};
}

InferFn SchemaThen(TypeCheck check) {
  return [check](const InferContext& context) -> StatusOr<std::vector<TensorType>> {
    ASSIGN_OR_RETURN(std::vector<TensorType> outputs, InferFromSchema(context));
    RETURN_IF_ERROR(check(context, outputs));
    return outputs;
  };
}

LiftFn MoveAttributeToInput(int opset, const char* attribute, size_t index) {
  return [=](LiftContext& lift) {
    if (lift.opset() < opset) lift.AttributeToInput(attribute, index);
    return OkStatus();
  };
}

}  // namespace onnxtrain
