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

// -(1/count) sum over counted labels of the mean over classes of log p.
Value* UniformCrossEntropy(GraphBuilder& build, const AppendLossOptions& options, Value* log_probability,
                           Value* labels) {
  Value* over_classes =
      build.Op("ReduceMean", {log_probability, build.Ints({1})}, {{"keepdims", int64_t{0}}}, "mean_log_probability");
  if (!build.ok()) return nullptr;
  const DType dtype = over_classes->type().dtype;
  Value* kept = build.Op("Where", {Counted(build, labels, options.ignore_index), over_classes, build.Scalar(0, dtype)});
  Value* count = CountedLabels(build, labels, nullptr, &options.ignore_index,
                               dtype == DType::kDouble ? DType::kDouble : DType::kFloat, "smoothed_labels");
  Value* sum = SumOfAll(build, kept, "log_probability_sum");
  if (!build.ok()) return nullptr;
  Value* divisor = build.Op("Max", {build.Cast(count, dtype), build.Scalar(1, dtype)});
  return build.Neg(build.Div(sum, divisor));
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
  const Attributes attributes{{"reduction", "mean"}, {"ignore_index", options.ignore_index}};
  if (options.kind == LossKind::kNegativeLogLikelihood) {
    return build.Op("NegativeLogLikelihoodLoss", {x, labels}, attributes, kName);
  }
  if (options.label_smoothing == 0) return build.Op("SoftmaxCrossEntropyLoss", {x, labels}, attributes, kName);
  Value* log_probability = build.Op("LogSoftmax", {x}, {{"axis", int64_t{1}}}, "log_probability");
  Value* exact = build.Op("NegativeLogLikelihoodLoss", {log_probability, labels}, attributes, "sharp_loss");
  Value* uniform = UniformCrossEntropy(build, options, log_probability, labels);
  if (!build.ok()) return nullptr;
  const DType dtype = x->type().dtype;
  return build.Op("Add",
                  {build.Mul(exact, build.Scalar(1 - options.label_smoothing, dtype)),
                   build.Mul(uniform, build.Scalar(options.label_smoothing, dtype))},
                  {}, kName);
}

Value* ElementLoss(GraphBuilder& build, LossKind kind, Value* x, Value* labels) {
  if (kind == LossKind::kBinaryCrossEntropy) {
    return MeanOfAll(build, build.Sub(build.Op("Softplus", {x}), build.Mul(x, labels)));
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
  if (ignore_index != nullptr) right = build.Op("And", {right, Counted(build, labels, *ignore_index)});
  if (!build.ok()) return nullptr;
  return SumOfAll(build, build.Cast(right, DType::kDouble), "correct");
}

}  // namespace onnxtrain
