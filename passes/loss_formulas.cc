// SPDX-License-Identifier: Apache-2.0
#include "passes/loss_formulas.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kName = "local_loss";

Value* MeanOfAll(GraphBuilder& build, Value* x) {
  return build.Op("ReduceMean", {x}, {{"keepdims", int64_t{0}}}, kName);
}

Value* SumOfAll(GraphBuilder& build, Value* x, std::string_view name) {
  return build.Op("ReduceSum", {x}, {{"keepdims", int64_t{0}}}, name);
}

Value* Half(GraphBuilder& build, Value* x) { return build.Mul(x, build.Scalar(0.5, x->type().dtype)); }

// True where the label counts.
Value* Counted(GraphBuilder& build, Value* labels, int64_t ignore_index) {
  Value* ignored = build.Op("Equal", {labels, build.Scalar(static_cast<double>(ignore_index), labels->type().dtype)});
  return build.Op("Not", {ignored});
}

Value* SmoothL1(GraphBuilder& build, Value* difference) {
  const DType dtype = difference->type().dtype;
  Value* magnitude = build.Op("Abs", {difference});
  Value* square = Half(build, build.Mul(difference, difference));
  Value* line = build.Sub(magnitude, build.Scalar(0.5, dtype));
  return build.Op("Where", {build.Op("Less", {magnitude, build.Scalar(1, dtype)}), square, line});
}

}  // namespace

Value* ClassLoss(GraphBuilder& build, const AppendLossOptions& options, Value* x, Value* labels) {
  Attributes attributes{{"reduction", "mean"}, {"ignore_index", options.ignore_index}};
  if (options.kind == LossKind::kNegativeLogLikelihood) {
    return build.Op("NegativeLogLikelihoodLoss", {x, labels}, std::move(attributes), kName);
  }
  if (options.label_smoothing == 0) {
    return build.Op("SoftmaxCrossEntropyLoss", {x, labels}, std::move(attributes), kName);
  }
  attributes.Set("label_smoothing", static_cast<float>(options.label_smoothing));
  return build.Op("onnxtrain.SoftmaxCrossEntropyLoss", {x, labels}, std::move(attributes), kName);
}

Value* ElementLoss(GraphBuilder& build, LossKind kind, Value* x, Value* labels) {
  if (kind == LossKind::kBinaryCrossEntropy) {
    return build.Op("onnxtrain.BinaryCrossEntropyWithLogits", {x, labels}, {{"reduction", "mean"}}, kName);
  }
  Value* difference = build.Sub(x, labels);
  if (!build.ok()) return nullptr;
  if (kind == LossKind::kMeanSquaredError) return MeanOfAll(build, build.Mul(difference, difference));
  if (kind == LossKind::kL1) return MeanOfAll(build, build.Op("Abs", {difference}));
  CHECK(kind == LossKind::kSmoothL1);
  return MeanOfAll(build, SmoothL1(build, difference));
}

Value* Reduction(GraphBuilder& build, LossKind kind, Value* x) {
  if (kind == LossKind::kMean) return MeanOfAll(build, x);
  if (kind == LossKind::kSum) return SumOfAll(build, x, kName);
  CHECK(kind == LossKind::kHalfSumOfSquares);
  return SumOfAll(build, Half(build, build.Mul(x, x)), kName);
}

Value* CountedLabels(GraphBuilder& build, Value* labels, Value* class_weights, const int64_t* ignore_index, DType to,
                     std::string_view name) {
  Attributes attributes{{"to", static_cast<int64_t>(to)}};
  if (ignore_index != nullptr) attributes.Set("ignore_index", *ignore_index);
  std::vector<Value*> inputs{labels};
  if (class_weights != nullptr) inputs.push_back(class_weights);
  return build.Op("onnxtrain.CountLabels", std::move(inputs), std::move(attributes), name);
}

Value* CorrectLabels(GraphBuilder& build, Value* logits, Value* labels, const int64_t* ignore_index) {
  Value* best = build.Op("ArgMax", {logits}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}, "best_class");
  Value* right = build.Op("Equal", {best, build.Cast(labels, DType::kInt64)});
  // A negative number is no class and equals none.
  if (ignore_index != nullptr && *ignore_index >= 0) {
    right = build.Op("And", {right, Counted(build, labels, *ignore_index)});
  }
  if (!build.ok()) return nullptr;
  return SumOfAll(build, build.Cast(right, DType::kDouble), "correct");
}

}  // namespace onnxtrain
