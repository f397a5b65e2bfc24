// SPDX-License-Identifier: Apache-2.0
// Normalizations. Their gradients are one operator each, which computes the statistics again from x: a row or a channel
// lies in the cache then, and nothing has to be kept from forward to backward.
//   onnxtrain.LayerNormalizationGrad (dy, x, scale) <axis, epsilon, rms> -> dx, dscale, dbias
//   onnxtrain.BatchNormalizationGrad (dy, x, scale, [mean, variance]) <epsilon> -> dx, dscale, dbias;
//     batch statistics without mean and variance
//   onnxtrain.GroupNormalizationGrad (dy, x, scale) <num_groups, epsilon> -> dx, dscale, dbias
#include "graph/gradient.h"
#include "graph/lift.h"
#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/own_op_checks.h"

namespace onnxtrain {
namespace {

using Types = StatusOr<std::vector<TensorType>>;

// An operand that broadcasts is written out, so that kernels see one value an element.
void ExpandInput(LiftContext& context, size_t index, const Shape& shape) {
  if (!context.HasInput(index)) return;
  Value*& input = context.node.inputs[index];
  if (input->type().shape != shape) input = context.build.Op("Expand", {input, context.build.Ints(shape)});
}

Shape NormalizedShape(const Value* x, const Attributes& attributes) {
  const Shape& shape = x->type().shape;
  int64_t axis = attributes.Int("axis", -1);
  if (axis < 0) axis += x->type().rank();
  if (axis < 0 || axis >= x->type().rank()) return {};
  return Shape(shape.begin() + axis, shape.end());
}

Status LiftRowNormalization(LiftContext& context) {
  const Shape shape = NormalizedShape(context.node.inputs[0], context.node.attributes);
  ExpandInput(context, 1, shape);
  ExpandInput(context, 2, shape);
  return context.build.status();
}

// Before opset 14, five outputs (or any beyond the first) asked for training.
Status LiftBatchNormalization(LiftContext& context) {
  ImportedNode& node = context.node;
  if (node.attributes.Int("spatial", 1) == 0) {
    return InvalidModelError(node.origin +
                             ": BatchNormalization with spatial = 0 (statistics per position) is not supported");
  }
  node.attributes.Erase("spatial");
  if (context.opset() >= 14) return OkStatus();
  if (node.output_names.size() > 1) {
    node.attributes.Set("training_mode", int64_t{1});
    node.output_names.resize(std::min<size_t>(node.output_names.size(), 3));
  }
  return OkStatus();
}

// Opset 18 had one scale and bias a group; 21 has one a channel.
Status LiftGroupNormalization(LiftContext& context) {
  if (context.opset() >= 21) return OkStatus();
  GraphBuilder& build = context.build;
  const Shape& shape = context.node.inputs[0]->type().shape;
  const int64_t groups = context.node.attributes.Int("num_groups", 1);
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0) {
    return InvalidModelError(context.node.origin + ": " + std::to_string(groups) +
                             " groups do not divide the channels of " + ToString(context.node.inputs[0]->type()));
  }
  for (size_t index : {size_t{1}, size_t{2}}) {
    Value* per_group = build.Reshape(context.node.inputs[index], {groups, 1});
    Value* spread = build.Op("Expand", {per_group, build.Ints({groups, shape[1] / groups})});
    context.node.inputs[index] = build.Reshape(spread, {shape[1]});
  }
  return build.status();
}

constexpr AttributeRule kEpsilon{"epsilon", AttributeKind::kFloat};

// dy, x, scale; dx, dscale, dbias.
void CheckGradientInputs(OwnOpChecks& check, const InferContext& context, size_t most) {
  check.Inputs(3, most);
  check.Outputs(1, 3);
  check.Floating(1, "x");
  check.Floating(2, "scale");
  if (!check.ok()) return;
  check.Type(0, "gradient", context.inputs[1]);
}

Types GradientTypes(const InferContext& context) {
  return std::vector<TensorType>{context.inputs[1], context.inputs[2], context.inputs[2]};
}

Types InferLayerGradient(const InferContext& context) {
  OwnOpChecks check(context);
  CheckGradientInputs(check, context, 3);
  check.Attributes({{"axis", AttributeKind::kInt}, kEpsilon, {"rms", AttributeKind::kInt}});
  RETURN_IF_ERROR(check.status());
  const int64_t rank = context.inputs[1].rank();
  const int64_t axis = context.attributes.Int("axis", -1);
  check.Demand(-rank <= axis && axis < rank, "attribute 'axis' is outside of the input's axes");
  RETURN_IF_ERROR(check.status());
  const Shape& shape = context.inputs[1].shape;
  const Shape normalized(shape.begin() + (axis < 0 ? axis + rank : axis), shape.end());
  check.Demand(context.inputs[2].shape == normalized,
               "scale must be " + ToString(normalized) + ", found " + ToString(context.inputs[2]));
  RETURN_IF_ERROR(check.status());
  return GradientTypes(context);
}

void CheckChannels(OwnOpChecks& check, const InferContext& context) {
  if (!check.ok()) return;
  const TensorType& x = context.inputs[1];
  check.Demand(x.rank() >= 2 || context.op == "onnxtrain.BatchNormalizationGrad", "x must be [N, C, ...]");
  if (check.ok()) check.Type(2, "scale", {x.dtype, {x.rank() < 2 ? 1 : x.shape[1]}});
}

Types InferBatchGradient(const InferContext& context) {
  OwnOpChecks check(context);
  CheckGradientInputs(check, context, 5);
  check.Attributes({kEpsilon});
  CheckChannels(check, context);
  RETURN_IF_ERROR(check.status());
  check.Demand(context.inputs.size() != 4, "mean and variance come together");
  RETURN_IF_ERROR(check.status());
  for (size_t index = 3; index < context.inputs.size(); ++index) {
    check.Type(index, index == 3 ? "mean" : "variance", context.inputs[2]);
  }
  RETURN_IF_ERROR(check.status());
  return GradientTypes(context);
}

Types InferGroupGradient(const InferContext& context) {
  OwnOpChecks check(context);
  CheckGradientInputs(check, context, 3);
  check.Attributes({kEpsilon, {"num_groups", AttributeKind::kInt, true}});
  CheckChannels(check, context);
  RETURN_IF_ERROR(check.status());
  const int64_t groups = context.attributes.Int("num_groups", 1);
  check.Demand(groups >= 1 && context.inputs[1].shape[1] % groups == 0, "the groups do not divide the channels");
  RETURN_IF_ERROR(check.status());
  return GradientTypes(context);
}

// The schema has a function body and no inference of its own.
Types InferGroupNormalization(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(3, 3);
  check.Outputs(1, 1);
  check.Attributes({kEpsilon, {"num_groups", AttributeKind::kInt, true}, {"stash_type", AttributeKind::kInt}});
  check.Floating(0, "x");
  RETURN_IF_ERROR(check.status());
  const TensorType& x = context.inputs[0];
  const int64_t groups = context.attributes.Int("num_groups", 1);
  check.Demand(x.rank() >= 2 && groups >= 1 && x.shape[1] % groups == 0,
               "x must be [N, C, ...] with a number of channels that the groups divide");
  RETURN_IF_ERROR(check.status());
  check.Type(1, "scale", {x.dtype, {x.shape[1]}});
  check.Type(2, "bias", {x.dtype, {x.shape[1]}});
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{x};
}

// Emits `op` and hands its outputs to the inputs x, scale and bias of the node.
Status SetThree(GradientContext& context, std::string_view op, std::vector<Value*> more, Attributes attributes) {
  std::vector<Value*> inputs = {context.output_gradient(0), context.input(0), context.input(1)};
  inputs.insert(inputs.end(), more.begin(), more.end());
  const float epsilon = context.attributes().Float("epsilon", 1e-5f);
  attributes.Set("epsilon", epsilon);
  const std::vector<Value*> gradients = context.build.Ops(op, std::move(inputs), std::move(attributes), 3);
  for (size_t index : {0, 1, 2}) {
    if (context.wanted(index)) context.SetInputGradient(index, gradients[index]);
  }
  return context.build.status();
}

Status DemandFirstOutputOnly(const GradientContext& context, const char* others) {
  for (size_t index : {1, 2}) {
    if (context.output_gradient(index) == nullptr) continue;
    return InvalidModelError(context.node().Describe() + ": the loss depends on its outputs " + others +
                             ", through which there is no gradient");
  }
  return OkStatus();
}

Status LayerGradient(GradientContext& context) {
  RETURN_IF_ERROR(DemandFirstOutputOnly(context, "Mean or InvStdDev"));
  return SetThree(context, "onnxtrain.LayerNormalizationGrad", {}, {{"axis", context.attributes().Int("axis", -1)}});
}

Status RmsGradient(GradientContext& context) {
  return SetThree(context, "onnxtrain.LayerNormalizationGrad", {},
                  {{"axis", context.attributes().Int("axis", -1)}, {"rms", int64_t{1}}});
}

Status BatchGradient(GradientContext& context) {
  RETURN_IF_ERROR(DemandFirstOutputOnly(context, "running_mean or running_var"));
  if (context.attributes().Int("training_mode", 0) != 0) {
    return SetThree(context, "onnxtrain.BatchNormalizationGrad", {}, {});
  }
  return SetThree(context, "onnxtrain.BatchNormalizationGrad", {context.input(3), context.input(4)}, {});
}

Status GroupGradient(GradientContext& context) {
  return SetThree(context, "onnxtrain.GroupNormalizationGrad", {},
                  {{"num_groups", context.attributes().Int("num_groups", 1)}});
}

Status InstanceGradient(GradientContext& context) {
  return SetThree(context, "onnxtrain.GroupNormalizationGrad", {}, {{"num_groups", context.input(0)->type().shape[1]}});
}

std::vector<AliasRule> InPlace(const Node&) { return {{AliasRule::Kind::kInPlace, 0, 0}}; }
std::vector<AliasRule> GradientInPlace(const Node&) {
  return {{AliasRule::Kind::kInPlace, 0, 0}, {AliasRule::Kind::kInPlace, 0, 1}};
}

}  // namespace

void AddNormalizationOps(OpRegistry& registry) {
  registry.Add(
      {.name = "LayerNormalization", .lift = LiftRowNormalization, .gradient = LayerGradient, .aliases = InPlace});
  registry.Add({.name = "RMSNormalization", .lift = LiftRowNormalization, .gradient = RmsGradient, .aliases = InPlace});
  registry.Add({.name = "BatchNormalization",
                .lift = LiftBatchNormalization,
                .gradient = BatchGradient,
                .aliases = InPlace,
                .stop_gradient_inputs = {3, 4}});
  registry.Add({.name = "InstanceNormalization", .gradient = InstanceGradient, .aliases = InPlace});
  registry.Add({.name = "GroupNormalization",
                .lift = LiftGroupNormalization,
                .infer = InferGroupNormalization,
                .gradient = GroupGradient,
                .aliases = InPlace});
  registry.Add({.name = "onnxtrain.LayerNormalizationGrad", .infer = InferLayerGradient, .aliases = GradientInPlace});
  registry.Add({.name = "onnxtrain.BatchNormalizationGrad", .infer = InferBatchGradient, .aliases = GradientInPlace});
  registry.Add({.name = "onnxtrain.GroupNormalizationGrad", .infer = InferGroupGradient, .aliases = GradientInPlace});
}

}  // namespace onnxtrain
