// SPDX-License-Identifier: Apache-2.0
#include "passes/append_loss.h"

#include <algorithm>
#include <array>

#include "graph/graph_builder.h"
#include "passes/loss_formulas.h"
#include "passes/step_structure.h"

namespace onnxtrain {
namespace {

struct NamedKind {
  LossKind kind;
  std::string_view name;
};
constexpr std::array<NamedKind, 10> kKinds = {{{LossKind::kAuto, "auto"},
                                               {LossKind::kCrossEntropy, "ce"},
                                               {LossKind::kMeanSquaredError, "mse"},
                                               {LossKind::kBinaryCrossEntropy, "bce"},
                                               {LossKind::kL1, "l1"},
                                               {LossKind::kSmoothL1, "smooth_l1"},
                                               {LossKind::kNegativeLogLikelihood, "nll"},
                                               {LossKind::kSum, "sum"},
                                               {LossKind::kMean, "mean"},
                                               {LossKind::kHalfSumOfSquares, "l2"}}};

bool HasLabels(LossKind kind) {
  return kind != LossKind::kAuto && kind != LossKind::kSum && kind != LossKind::kMean &&
         kind != LossKind::kHalfSumOfSquares;
}

// What the pass has found or built.
struct Loss {
  Value* loss = nullptr;
  Value* weight = nullptr;
  Value* logits = nullptr;  // class axis 1; null: labels are no classes
  Value* labels = nullptr;
  std::optional<int64_t> ignore_index;
  const int64_t* ignore() const { return ignore_index ? &*ignore_index : nullptr; }
};

DType WeightType(const Value& loss) { return loss.type().dtype == DType::kDouble ? DType::kDouble : DType::kFloat; }

// Axis 0 of the first fed input that has one: cli.md's sample axis.
int64_t SampleCount(const Graph& graph) {
  for (const Value* input : graph.inputs()) {
    if (input->type().rank() > 0) return input->type().shape[0];
  }
  return 1;
}

Shape WithoutAxis(const Shape& shape, size_t axis) {
  Shape rest = shape;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(axis));
  return rest;
}

// The node that computes the value, seen through nodes that only rename, cast or reshape it.
Node* RealProducer(const Value* value) {
  Node* node = value->producer();
  while (node != nullptr) {
    const std::string& op = node->op();
    const bool passes =
        op == "Identity" || op == "Cast" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" || op == "Flatten";
    if (!passes) return node;
    node = node->input(0)->producer();
  }
  return nullptr;
}

class LossAppender {
 public:
  LossAppender(Graph& graph, const AppendLossOptions& options)
      : graph_(graph), options_(options), build_(graph, nullptr, "append_loss") {}

  Status Run() {
    RETURN_IF_ERROR(CheckOptions());
    Loss found;
    if (options_.kind == LossKind::kAuto) {
      ASSIGN_OR_RETURN(found, OwnLoss());
    } else {
      ASSIGN_OR_RETURN(found, NewLoss());
    }
    RETURN_IF_ERROR(build_.status());
    graph_.SetRole("loss", found.loss);
    graph_.SetRole("loss_weight", found.weight);
    if (found.logits != nullptr) {
      graph_.SetRole("accuracy_logits", found.logits);
      graph_.SetRole("labels", found.labels);
    }
    return options_.evaluation ? AddEvaluation(found) : OkStatus();
  }

 private:
  Status CheckOptions() const {
    const double smoothing = options_.label_smoothing;
    if (smoothing != 0 && options_.kind != LossKind::kCrossEntropy) {
      return UsageError("--label-smoothing goes with --loss ce, not with " + std::string(NameOf(options_.kind)));
    }
    if (smoothing < 0 || smoothing > 1) return UsageError("--label-smoothing must lie between 0 and 1");
    return OkStatus();
  }

  // The value that --loss-on names, or the only output that fits.
  StatusOr<Value*> FindOutput() const {
    if (!options_.output.empty()) {
      Value* value = graph_.FindValue(options_.output);
      if (value != nullptr) return value;
      return UsageError("--loss-on: the model has no value named '" + options_.output +
                        "'; its float outputs are:" + LossCandidates(graph_));
    }
    const bool scalar = options_.kind == LossKind::kAuto;
    std::vector<Value*> fitting;
    for (Value* output : graph_.outputs()) {
      if (!IsFloating(output->type().dtype)) continue;
      if (!scalar || output->type().elements() == 1) fitting.push_back(output);
    }
    if (fitting.size() == 1) return fitting[0];
    const std::string wanted = scalar ? "scalar float output to take as the loss" : "float output to put the loss on";
    const std::string advice = scalar ? "choose a loss with --loss and --loss-on" : "choose one with --loss-on";
    return InvalidModelError((fitting.empty() ? "the model has no " : "the model has more than one ") + wanted + "; " +
                             advice + ". Its float outputs are:" + LossCandidates(graph_));
  }

  StatusOr<Loss> OwnLoss() {
    Loss found;
    ASSIGN_OR_RETURN(found.loss, FindOutput());
    if (!IsFloating(found.loss->type().dtype) || found.loss->type().elements() != 1) {
      return InvalidModelError("'" + found.loss->name() + "' is " + ToString(found.loss->type()) +
                               ", not one floating-point number: choose a loss for it with --loss");
    }
    const Node* node = RealProducer(found.loss);
    const bool class_loss =
        node != nullptr && (node->op() == "SoftmaxCrossEntropyLoss" || node->op() == "NegativeLogLikelihoodLoss");
    if (class_loss) {
      found.logits = node->input(0);
      found.labels = node->input(1);
      if (node->attributes().Has("ignore_index")) found.ignore_index = node->attributes().Int("ignore_index", 0);
    }
    const bool counted = class_loss && node->attributes().String("reduction", "mean") == "mean";
    found.weight = counted ? CountedLabels(build_, found.labels, node->input(2), found.ignore(),
                                           WeightType(*found.loss), "local_weight")
                           : SampleWeight(*found.loss);
    return found;
  }

  Value* SampleWeight(const Value& loss) {
    const double samples = static_cast<double>(SampleCount(graph_));
    return build_.Constant(Tensor::Scalar(samples).CastTo(WeightType(loss)), "local_weight");
  }

  StatusOr<Loss> NewLoss() {
    ASSIGN_OR_RETURN(Value * x, FindOutput());
    if (!IsFloating(x->type().dtype)) {
      return InvalidModelError("--loss-on '" + x->name() + "' is " + ToString(x->type()) +
                               ": a loss needs a floating-point value");
    }
    if (!HasLabels(options_.kind)) {
      Loss found;
      found.loss = Reduction(build_, options_.kind, x);
      RETURN_IF_ERROR(build_.status());
      found.weight = SampleWeight(*found.loss);
      return found;
    }
    ASSIGN_OR_RETURN(Value * labels, FindLabels(*x));
    if (HasClassLabels(options_.kind)) return NewClassLoss(x, labels);
    return NewElementLoss(x, labels);
  }

  // The labels as they are fed: an existing value, or a new input.
  StatusOr<Value*> FindLabels(const Value& x) {
    if (Value* value = graph_.FindValue(options_.labels)) {
      if (value->kind() == ValueKind::kInput) return value;
      return UsageError("--labels '" + options_.labels + "' is no input of the model but a value inside it");
    }
    TensorType type = options_.labels_type;
    if (!type.known()) type = DefaultLabels(x);
    return graph_.AddInput(options_.labels, std::move(type));
  }

  TensorType DefaultLabels(const Value& x) const {
    if (!HasClassLabels(options_.kind)) return x.type();
    return {DType::kInt64, x.type().rank() < 2 ? Shape{} : WithoutAxis(x.type().shape, 1)};
  }

  Status LabelsMisfit(const Value& x, const Value& labels, const std::string& expected) const {
    return InvalidDataError("labels '" + labels.name() + "' of --loss " + std::string(NameOf(options_.kind)) + " on '" +
                            x.name() + "' " + ToString(x.type()) + " must be " + expected + ", found " +
                            ToString(labels.type()));
  }

  StatusOr<Loss> NewClassLoss(Value* x, Value* labels) {
    const Shape& shape = x->type().shape;
    if (shape.size() < 2) {
      return InvalidModelError("--loss " + std::string(NameOf(options_.kind)) + " needs a class axis: '" + x->name() +
                               "' is " + ToString(x->type()));
    }
    if (!IsInteger(labels->type().dtype)) return LabelsMisfit(*x, *labels, "integers");
    const bool second = labels->type().shape == WithoutAxis(shape, 1);
    const bool last = labels->type().shape == WithoutAxis(shape, shape.size() - 1);
    if (!second && !last) {
      return LabelsMisfit(*x, *labels,
                          "of shape " + ToString(WithoutAxis(shape, 1)) +
                              (shape.size() == 2 ? "" : " or " + ToString(WithoutAxis(shape, shape.size() - 1))));
    }
    WarnOfInput(*x);
    const DType dtype = labels->type().dtype;
    if (dtype != DType::kInt32 && dtype != DType::kInt64) labels = build_.Cast(labels, DType::kInt64);
    if (!second) {
      const int64_t classes = shape.back();
      const int64_t rows = labels->type().elements();
      x = build_.Reshape(x, {rows, classes});
      labels = build_.Reshape(labels, {rows});
    }
    RETURN_IF_ERROR(build_.status());
    Loss found{ClassLoss(build_, options_, x, labels), nullptr, x, labels, options_.ignore_index};
    RETURN_IF_ERROR(build_.status());
    found.weight = CountedLabels(build_, labels, nullptr, found.ignore(), WeightType(*found.loss), "local_weight");
    return found;
  }

  void WarnOfInput(const Value& x) const {
    const Node* node = RealProducer(&x);
    const std::string op = node == nullptr ? "" : node->op();
    if (options_.warnings == nullptr) return;
    if (options_.kind == LossKind::kCrossEntropy && op == "Softmax") {
      options_.warnings->push_back("--loss ce is meant for logits, but '" + x.name() +
                                   "' is the output of a Softmax: put it on what feeds the Softmax");
    }
    if (options_.kind == LossKind::kNegativeLogLikelihood && op != "LogSoftmax") {
      options_.warnings->push_back("--loss nll is meant for the output of a LogSoftmax, but '" + x.name() +
                                   "' is the output of " + (op.empty() ? "no operator" : op));
    }
  }

  StatusOr<Loss> NewElementLoss(Value* x, Value* labels) {
    if (labels->type().shape != x->type().shape) return LabelsMisfit(*x, *labels, ToString(x->type()));
    Loss found;
    found.loss = ElementLoss(build_, options_.kind, x, build_.Cast(labels, x->type().dtype));
    RETURN_IF_ERROR(build_.status());
    found.weight = SampleWeight(*found.loss);
    return found;
  }

  // Sums rather than means leave the graph, so that they may be added over batches and ranks.
  Status AddEvaluation(const Loss& found) {
    for (const char* name : {"loss_sum", "loss_weight", "status", "correct", "counted"}) {
      RETURN_IF_ERROR(FreeName(graph_, name));
    }
    const std::vector<Value*> sums = build_.Ops("onnxtrain.StepSums", {found.loss, found.weight}, {}, 2, "sums");
    const std::vector<Value*> parts = build_.Ops("Split", {sums[0], build_.Ints({1, 1, 1})}, {{"axis", int64_t{0}}}, 3);
    RETURN_IF_ERROR(build_.status());
    graph_.Rename(sums[1], "status");
    graph_.Rename(parts[0], "loss_sum");
    graph_.Rename(parts[1], "loss_weight");
    graph_.SetRole("loss_sum", parts[0]);
    std::vector<Value*> outputs{parts[0], parts[1], sums[1]};
    if (found.logits != nullptr) {
      outputs.push_back(CorrectLabels(build_, found.logits, found.labels, found.ignore()));
      outputs.push_back(CountedLabels(build_, found.labels, nullptr, found.ignore(), DType::kDouble, "counted"));
    }
    RETURN_IF_ERROR(build_.status());
    for (Value* output : outputs) graph_.AddOutput(output);
    return OkStatus();
  }

  Graph& graph_;
  const AppendLossOptions& options_;
  GraphBuilder build_;
};

class AppendLossPass : public Pass {
 public:
  explicit AppendLossPass(AppendLossOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "append_loss"; }

  StatusOr<bool> Run(Program& program) const override {
    Graph* graph = program.FindGraph(options_.graph);
    if (graph == nullptr) return InvalidModelError("append_loss: no graph '" + options_.graph + "'");
    if (graph->FindRole("loss") != nullptr) return false;
    RETURN_IF_ERROR(LossAppender(*graph, options_).Run());
    return true;
  }

 private:
  AppendLossOptions options_;
};

}  // namespace

std::optional<LossKind> LossKindFromName(std::string_view name) {
  for (const NamedKind& entry : kKinds) {
    if (entry.name == name) return entry.kind;
  }
  return std::nullopt;
}

std::string_view NameOf(LossKind kind) {
  return std::find_if(kKinds.begin(), kKinds.end(), [&](const NamedKind& entry) { return entry.kind == kind; })->name;
}

std::string LossCandidates(const Graph& graph) {
  std::string text;
  for (const Value* output : graph.outputs()) {
    if (IsFloating(output->type().dtype)) text += "\n  " + output->name() + ": " + ToString(output->type());
  }
  return text.empty() ? "\n  (none)" : text;
}

std::unique_ptr<Pass> AppendLoss(const AppendLossOptions& options) { return std::make_unique<AppendLossPass>(options); }

}  // namespace onnxtrain
