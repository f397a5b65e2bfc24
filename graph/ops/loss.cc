// SPDX-License-Identifier: Apache-2.0
// Losses. SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss are ONNX's; ours add what training needs:
//   onnxtrain.SoftmaxCrossEntropyLoss (scores, labels, [class weights]) <reduction, ignore_index, label_smoothing>: the
//     loss of PyTorch's cross_entropy with label smoothing;
//   onnxtrain.BinaryCrossEntropyWithLogits (x, target) <reduction>: max(x, 0) - x t + log(1 + exp(-|x|)).
// The class axis is 1. `reduction` is "none", "sum" or "mean" (the default; over the weights of counted labels).
#include "graph/gradient.h"
#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/own_op_checks.h"

namespace onnxtrain {
namespace {

using Types = StatusOr<std::vector<TensorType>>;

void CheckReduction(OwnOpChecks& check, const InferContext& context) {
  if (!check.ok()) return;
  const std::string reduction = context.attributes.String("reduction", "mean");
  check.Demand(reduction == "none" || reduction == "sum" || reduction == "mean",
               "attribute 'reduction' must be \"none\", \"sum\" or \"mean\", found \"" + reduction + "\"");
}

// Shape of the labels that go with scores [N, C, d1, ...].
Shape LabelShape(const Shape& scores) {
  Shape labels = {scores[0]};
  labels.insert(labels.end(), scores.begin() + 2, scores.end());
  return labels;
}

// scores at `first`, labels and class weights behind them.
void CheckClassInputs(OwnOpChecks& check, const InferContext& context, size_t first) {
  check.Floating(first, "scores");
  if (!check.ok()) return;
  const TensorType& scores = context.inputs[first];
  check.Demand(scores.rank() >= 2, "scores must be [N, C, ...], found " + ToString(scores));
  if (!check.ok()) return;
  const TensorType& labels = context.inputs[first + 1];
  check.Demand(
      IsInteger(labels.dtype) && labels.shape == LabelShape(scores.shape),
      "labels must be integers of shape " + ToString(LabelShape(scores.shape)) + ", found " + ToString(labels));
  if (context.inputs.size() > first + 2 && context.inputs[first + 2].known()) {
    check.Type(first + 2, "class weights", {scores.dtype, {scores.shape[1]}});
  }
}

TensorType LossType(const InferContext& context, const TensorType& scores) {
  const bool whole = context.attributes.String("reduction", "mean") == "none";
  return {scores.dtype, whole ? LabelShape(scores.shape) : Shape{}};
}

Types InferSmoothedCrossEntropy(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(2, 3);
  check.Outputs(1, 1);
  check.Attributes({{"reduction", AttributeKind::kString},
                    {"ignore_index", AttributeKind::kInt},
                    {"label_smoothing", AttributeKind::kFloat}});
  CheckReduction(check, context);
  CheckClassInputs(check, context, 0);
  RETURN_IF_ERROR(check.status());
  const float smoothing = context.attributes.Float("label_smoothing", 0);
  check.Demand(0 <= smoothing && smoothing <= 1, "attribute 'label_smoothing' must be between 0 and 1");
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{LossType(context, context.inputs[0])};
}

// dL/dloss, scores, labels, [class weights] -> dL/dscores
Types InferClassLossGradient(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(3, 4);
  check.Outputs(1, 1);
  check.Attributes({{"reduction", AttributeKind::kString},
                    {"ignore_index", AttributeKind::kInt},
                    {"label_smoothing", AttributeKind::kFloat}});
  CheckReduction(check, context);
  CheckClassInputs(check, context, 1);
  RETURN_IF_ERROR(check.status());
  check.Type(0, "gradient of the loss", LossType(context, context.inputs[1]));
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{context.inputs[1]};
}

Attributes KeepAttributes(const Attributes& attributes, std::initializer_list<const char*> names) {
  Attributes kept;
  for (const char* name : names) {
    if (const AttributeValue* value = attributes.Find(name)) kept.Set(name, *value);
  }
  return kept;
}

Value* ClassLossGradient(GradientContext& context, std::string_view op) {
  std::vector<Value*> inputs = {context.output_gradient(0), context.input(0), context.input(1)};
  if (context.input(2) != nullptr) inputs.push_back(context.input(2));
  return context.build.Op(op, std::move(inputs),
                          KeepAttributes(context.attributes(), {"reduction", "ignore_index", "label_smoothing"}));
}

Status CrossEntropyGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  Value* gradient = nullptr;
  if (context.output_gradient(0) != nullptr) {
    gradient = ClassLossGradient(context, "onnxtrain.SoftmaxCrossEntropyLossGrad");
  }
  if (context.output_gradient(1) != nullptr) {
    Value* through_log =
        build.Op("onnxtrain.LogSoftmaxGrad", {context.output_gradient(1), context.output(1)}, {{"axis", int64_t{1}}});
    gradient = gradient == nullptr ? through_log : build.Add(gradient, through_log);
  }
  context.SetInputGradient(0, gradient);
  return build.status();
}

Status NegativeLogLikelihoodGradient(GradientContext& context) {
  context.SetInputGradient(0, ClassLossGradient(context, "onnxtrain.NegativeLogLikelihoodLossGrad"));
  return context.build.status();
}

std::vector<AliasRule> ScoresInPlace(const Node&) { return {{AliasRule::Kind::kInPlace, 0, 1}}; }

TensorType ElementwiseLossType(const InferContext& context, const TensorType& x) {
  return {x.dtype, context.attributes.String("reduction", "mean") == "none" ? x.shape : Shape{}};
}

Types InferBinaryCrossEntropy(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(2, 2);
  check.Outputs(1, 1);
  check.Attributes({{"reduction", AttributeKind::kString}});
  CheckReduction(check, context);
  check.Floating(0, "logits");
  RETURN_IF_ERROR(check.status());
  check.Type(1, "target", context.inputs[0]);
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{ElementwiseLossType(context, context.inputs[0])};
}

Types InferBinaryCrossEntropyGradient(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(3, 3);
  check.Outputs(1, 1);
  check.Attributes({{"reduction", AttributeKind::kString}});
  CheckReduction(check, context);
  check.Floating(1, "logits");
  RETURN_IF_ERROR(check.status());
  check.Type(0, "gradient of the loss", ElementwiseLossType(context, context.inputs[1]));
  check.Type(2, "target", context.inputs[1]);
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{context.inputs[1]};
}

Status BinaryCrossEntropyGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  Value* dloss = context.output_gradient(0);
  Value* x = context.input(0);
  Value* target = context.input(1);
  if (context.wanted(0)) {
    context.SetInputGradient(0, build.Op("onnxtrain.BinaryCrossEntropyWithLogitsGrad", {dloss, x, target},
                                         KeepAttributes(context.attributes(), {"reduction"})));
  }
  if (context.wanted(1)) {
    const bool mean = context.attributes().String("reduction", "mean") == "mean";
    const double scale = mean ? -1.0 / static_cast<double>(x->type().elements()) : -1.0;
    context.SetInputGradient(1, build.Mul(build.Mul(x, dloss), build.Scalar(scale, x->type().dtype)));
  }
  return build.status();
}

}  // namespace

void AddLossOps(OpRegistry& registry) {
  registry.Add({.name = "SoftmaxCrossEntropyLoss", .gradient = CrossEntropyGradient, .stop_gradient_inputs = {1, 2}});
  registry.Add(
      {.name = "NegativeLogLikelihoodLoss", .gradient = NegativeLogLikelihoodGradient, .stop_gradient_inputs = {1, 2}});
  registry.Add({.name = "onnxtrain.SoftmaxCrossEntropyLoss",
                .infer = InferSmoothedCrossEntropy,
                .gradient = CrossEntropyGradient,
                .stop_gradient_inputs = {1, 2}});
  registry.Add(
      {.name = "onnxtrain.SoftmaxCrossEntropyLossGrad", .infer = InferClassLossGradient, .aliases = ScoresInPlace});
  registry.Add({.name = "onnxtrain.NegativeLogLikelihoodLossGrad", .infer = InferClassLossGradient});
  registry.Add({.name = "onnxtrain.BinaryCrossEntropyWithLogits",
                .infer = InferBinaryCrossEntropy,
                .gradient = BinaryCrossEntropyGradient});
  registry.Add({.name = "onnxtrain.BinaryCrossEntropyWithLogitsGrad",
                .infer = InferBinaryCrossEntropyGradient,
                .aliases = ScoresInPlace});
}

}  // namespace onnxtrain
