// SPDX-License-Identifier: Apache-2.0
#include "graph/gradient.h"
#include "graph/lift.h"
#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/own_op_checks.h"

namespace onnxtrain {
namespace {

// Before opset 13 these operators flattened their input to two axes, [before axis, from axis on], with axis 1 as
// default.
Status LiftFromFlattened(LiftContext& context) {
  if (context.opset() >= 13) return OkStatus();
  GraphBuilder& build = context.build;
  Value* x = context.node.inputs[0];
  const Shape shape = x->type().shape;
  const int64_t rank = x->type().rank();
  int64_t axis = context.node.attributes.Int("axis", 1);
  if (axis < -rank || axis > rank) {
    return InvalidModelError("attribute 'axis' is " + std::to_string(axis) + " for an input of type " +
                             ToString(x->type()));
  }
  if (axis < 0) axis += rank;
  if (axis == rank - 1) {
    context.node.attributes.Set("axis", int64_t{-1});
    return OkStatus();
  }
  const std::span<const int64_t> sizes(shape);
  const Shape flat = {ElementsOf(sizes.first(axis)), ElementsOf(sizes.subspan(axis))};
  Value* y = build.Op(context.node.op, {build.Reshape(x, flat)}, {{"axis", int64_t{1}}}, context.node.output_names[0]);
  context.ReplaceOutputs({build.Reshape(y, shape)});
  return build.status();
}

StatusOr<std::vector<TensorType>> InferGradient(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(2, 2);
  check.Outputs(1, 1);
  check.Attributes({{"axis", AttributeKind::kInt}});
  check.Floating(0, "gradient");
  RETURN_IF_ERROR(check.status());
  check.Type(1, "result", context.inputs[0]);
  const int64_t rank = context.inputs[0].rank();
  const int64_t axis = context.attributes.Int("axis", -1);
  check.Demand(-rank <= axis && axis < rank, "attribute 'axis' is outside of the input's axes");
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{context.inputs[0]};
}

GradientFn GradientBy(std::string op) {
  return [op](GradientContext& context) {
    context.SetInputGradient(0, context.build.Op(op, {context.output_gradient(0), context.output(0)},
                                                 {{"axis", context.attributes().Int("axis", -1)}}));
    return context.build.status();
  };
}

std::vector<AliasRule> InPlace(const Node&) { return {{AliasRule::Kind::kInPlace, 0, 0}}; }
std::vector<AliasRule> GradientInPlace(const Node&) {
  return {{AliasRule::Kind::kInPlace, 0, 0}, {AliasRule::Kind::kInPlace, 0, 1}};
}

}  // namespace

void AddSoftmaxOps(OpRegistry& registry) {
  for (const std::string name : {"Softmax", "LogSoftmax"}) {
    const std::string gradient = "onnxtrain." + name + "Grad";
    registry.Add({.name = name, .lift = LiftFromFlattened, .gradient = GradientBy(gradient), .aliases = InPlace});
    registry.Add({.name = gradient, .infer = InferGradient, .aliases = GradientInPlace});
  }
  registry.Add({.name = "Hardmax", .lift = LiftFromFlattened});
}

}  // namespace onnxtrain
