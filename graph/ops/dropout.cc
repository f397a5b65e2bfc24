// SPDX-License-Identifier: Apache-2.0
// Dropout. The standard operator is run only where it does nothing (inference, or a ratio of zero); set_mode turns it
// into
//   onnxtrain.Dropout (x, attempt) <ratio, seed, draw_id> -> y, mask
//   onnxtrain.DropoutGrad (dy, mask) <ratio> -> dx
// whose draws depend on nothing but (seed, draw_id, attempted step, slice, element); see runtime/math/philox.h.
#include "graph/gradient.h"
#include "graph/lift.h"
#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/own_op_checks.h"

namespace onnxtrain {
namespace {

using Types = StatusOr<std::vector<TensorType>>;

// Until opset 12 the ratio was an attribute, and the graph did not say whether it trains.
Status LiftDropout(LiftContext& context) {
  if (context.opset() >= 12) return OkStatus();
  const double ratio = DecimalValue(context.node.attributes.Float("ratio", 0.5f));
  context.node.attributes.Erase("ratio");
  context.node.inputs.resize(2, nullptr);
  context.node.inputs[1] = context.build.Scalar(ratio, DType::kFloat);
  return context.build.status();
}

bool IsConstantZero(const Value* value) {
  return value != nullptr && value->constant() != nullptr && value->constant()->DoubleAt(0) == 0;
}

Status IdentityGradient(GradientContext& context) {
  const Value* ratio = context.input(1);
  const Value* training = context.input(2);
  if (training != nullptr && !IsConstantZero(training) && !IsConstantZero(ratio)) {
    return InvalidModelError(context.node().Describe() +
                             ": a Dropout that trains has no gradient before set_mode has made it onnxtrain.Dropout");
  }
  context.SetInputGradient(0, context.output_gradient(0));
  return OkStatus();
}

void CheckRatio(OwnOpChecks& check, const InferContext& context) {
  if (!check.ok()) return;
  const float ratio = context.attributes.Float("ratio", 0.5f);
  check.Demand(0 <= ratio && ratio < 1, "attribute 'ratio' must lie in [0, 1), found " + std::to_string(ratio));
}

Types InferOwnDropout(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(2, 2);
  check.Outputs(1, 2);
  check.Attributes(
      {{"ratio", AttributeKind::kFloat, true}, {"seed", AttributeKind::kInt}, {"draw_id", AttributeKind::kInt, true}});
  check.Floating(0, "x");
  check.Type(1, "attempt", {DType::kInt64, {}});
  CheckRatio(check, context);
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{context.inputs[0], {DType::kBool, context.inputs[0].shape}};
}

Types InferDropoutGradient(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(2, 2);
  check.Outputs(1, 1);
  check.Attributes({{"ratio", AttributeKind::kFloat, true}});
  check.Floating(0, "gradient");
  if (check.ok()) check.Type(1, "mask", {DType::kBool, context.inputs[0].shape});
  CheckRatio(check, context);
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{context.inputs[0]};
}

// Without a mask the draw is repeated: the operator is linear in x.
Status OwnDropoutGradient(GradientContext& context) {
  Value* dy = context.output_gradient(0);
  if (dy == nullptr) return OkStatus();
  Value* mask = context.output(1);
  const float ratio = context.attributes().Float("ratio", 0.5f);
  context.SetInputGradient(
      0, mask != nullptr ? context.build.Op("onnxtrain.DropoutGrad", {dy, mask}, {{"ratio", ratio}})
                         : context.build.Op("onnxtrain.Dropout", {dy, context.input(1)}, context.attributes()));
  return context.build.status();
}

std::vector<AliasRule> InPlace(const Node&) { return {{AliasRule::Kind::kInPlace, 0, 0}}; }

}  // namespace

void AddDropoutOps(OpRegistry& registry) {
  registry.Add({.name = "Dropout",
                .lift = LiftDropout,
                .gradient = IdentityGradient,
                .aliases = InPlace,
                .stop_gradient_inputs = {1, 2}});
  registry.Add({.name = "onnxtrain.Dropout",
                .infer = InferOwnDropout,
                .gradient = OwnDropoutGradient,
                .aliases = InPlace,
                .stop_gradient_inputs = {1},
                .random = true});
  registry.Add({.name = "onnxtrain.DropoutGrad", .infer = InferDropoutGradient, .aliases = InPlace});
}

}  // namespace onnxtrain
