// SPDX-License-Identifier: Apache-2.0
#include "passes/set_mode.h"

#include <algorithm>
#include <set>

#include "graph/graph_builder.h"
#include "graph/op_registry.h"
#include "passes/step_structure.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kOwnDropout = "onnxtrain.Dropout";
constexpr size_t kMeanInput = 3;
constexpr size_t kVarianceInput = 4;

std::vector<Node*> NodesOf(const Graph& graph, std::string_view op) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) {
    if (node->op() == op) nodes.push_back(node.get());
  }
  return nodes;
}

// The number behind an input that must be known: the ratio and the mode of Dropout.
StatusOr<double> ConstantScalar(const Node& node, size_t index, std::string_view what, double fallback) {
  const Value* input = node.input(index);
  if (input == nullptr) return fallback;
  if (input->constant() == nullptr || input->type().elements() != 1) {
    return InvalidModelError(node.Describe() + ": its " + std::string(what) + " '" + input->name() +
                             "' must be one constant, found a computed " + ToString(input->type()));
  }
  return input->constant()->DoubleAt(0);
}

// An old output is read as `value` from now on; the node may then go.
Status Redirect(Graph& graph, Value* output, Value* value) {
  if (output == nullptr || output == value) return OkStatus();
  return graph.ReplaceUses(output, value);
}

class ModeSetter {
 public:
  ModeSetter(Program& program, Graph& graph, const SetModeOptions& options)
      : program_(program), graph_(graph), options_(options) {}

  StatusOr<bool> Run() {
    RETURN_IF_ERROR(DemandNodes());
    for (Node* node : NodesOf(graph_, "Dropout")) RETURN_IF_ERROR(SetDropout(node));
    if (options_.dropout == DropoutMode::kOff) {
      for (Node* node : NodesOf(graph_, kOwnDropout)) RETURN_IF_ERROR(RemoveDropout(node));
    }
    for (Node* node : NodesOf(graph_, "BatchNormalization")) RETURN_IF_ERROR(SetBatchNorm(node));
    return changed_;
  }

 private:
  Status DemandNodes() const {
    if (options_.batch_norm == BatchNormMode::kTrain && NodesOf(graph_, "BatchNormalization").empty()) {
      return InvalidModelError(
          "--bn train: the model has no BatchNormalization; an export in inference mode folds it into the layer "
          "before. "
          "Export in training mode");
    }
    if (options_.dropout == DropoutMode::kOn && NodesOf(graph_, "Dropout").empty() &&
        NodesOf(graph_, kOwnDropout).empty()) {
      return InvalidModelError(
          "--dropout on: the model has no Dropout; an export in inference mode removes it. Export in training mode");
    }
    return OkStatus();
  }

  Status SetDropout(Node* node) {
    ASSIGN_OR_RETURN(const double ratio, ConstantScalar(*node, 1, "ratio", 0.5));
    ASSIGN_OR_RETURN(const double exported, ConstantScalar(*node, 2, "training_mode", 0));
    if (ratio < 0 || ratio >= 1) {
      return InvalidModelError(node->Describe() + ": ratio must lie in [0, 1), found " + std::to_string(ratio));
    }
    const bool active =
        options_.dropout == DropoutMode::kOn || (options_.dropout == DropoutMode::kAsExported && exported != 0);
    return active && ratio > 0 ? ReplaceDropout(node, ratio) : RemoveDropout(node);
  }

  // One past the largest draw_id: ids stay as they are in a second run.
  int64_t NextDrawId() const {
    int64_t next = 0;
    for (const Node* node : NodesOf(graph_, kOwnDropout)) {
      next = std::max(next, node->attributes().Int("draw_id", 0) + 1);
    }
    return next;
  }

  Status ReplaceDropout(Node* node, double ratio) {
    const int64_t seed = node->attributes().Int("seed", options_.seed);
    Value* attempt = CounterState(program_, graph_, "attempt");
    NodeSpec spec{std::string(kOwnDropout), {node->input(0), attempt}, {}, {}, node->origin(), {}};
    spec.attributes = {{"ratio", static_cast<float>(ratio)}, {"draw_id", NextDrawId()}, {"seed", seed}};
    spec.output_names = {node->output(0)->name(), "dropout_mask"};
    ASSIGN_OR_RETURN(Node * drawn, graph_.Insert(node, std::move(spec)));
    RETURN_IF_ERROR(Redirect(graph_, node->output(1), drawn->output(1)));
    return Replace(node, drawn->output(0));
  }

  Status RemoveDropout(Node* node) {
    if (Value* mask = node->output(1); mask != nullptr && InUse(mask)) {
      GraphBuilder build(graph_, node, node->origin());
      Tensor kept(TensorType{DType::kBool, {1}});
      kept.values<bool>()[0] = true;
      Value* all = build.Op("ConstantOfShape", {build.Ints(mask->type().shape)}, {{"value", std::move(kept)}});
      RETURN_IF_ERROR(build.status());
      RETURN_IF_ERROR(graph_.ReplaceUses(mask, all));
    }
    return Replace(node, node->input(0));
  }

  bool IsOutput(const Value* value) const {
    const std::vector<Value*>& outputs = graph_.outputs();
    return std::find(outputs.begin(), outputs.end(), value) != outputs.end();
  }

  bool InUse(const Value* value) const { return !value->consumers().empty() || IsOutput(value); }

  // Output 0 becomes `value`, under its old name where the new value is free to take it; roles follow.
  Status Replace(Node* node, Value* value) {
    Value* old = node->output(0);
    const std::string name = old->name();
    if (IsOutput(old) && (value->kind() != ValueKind::kIntermediate || IsOutput(value))) {
      GraphBuilder build(graph_, node, node->origin());
      value = build.Op("Identity", {value});
      RETURN_IF_ERROR(build.status());
    }
    RETURN_IF_ERROR(graph_.ReplaceUses(old, value));
    const std::map<std::string, Value*, std::less<>> roles = graph_.roles();
    for (const auto& [role, holder] : roles) {
      if (holder == old) graph_.SetRole(role, value);
    }
    graph_.Erase(node);
    const bool renamed = value->kind() == ValueKind::kIntermediate && value->producer()->op() == kOwnDropout;
    if (renamed && value->name() != name && graph_.FindValue(name) == nullptr) graph_.Rename(value, name);
    changed_ = true;
    return OkStatus();
  }

  bool Trains(const Node& node) const {
    if (options_.batch_norm == BatchNormMode::kAsExported) return node.attributes().Int("training_mode", 0) != 0;
    return options_.batch_norm == BatchNormMode::kTrain;
  }

  Status SetBatchNorm(Node* node) {
    ClassifyStatistics(*node);
    const bool trains = Trains(*node);
    const bool in_form = trains ? node->output(1) != nullptr && node->output(2) != nullptr
                                : node->output(1) == nullptr && node->output(2) == nullptr;
    if (in_form && (node->attributes().Int("training_mode", 0) != 0) == trains) {
      if (trains) return UpdateStatistics(node);
      return OkStatus();
    }
    changed_ = true;
    ASSIGN_OR_RETURN(Node * formed, InsertBatchNorm(node, trains));
    if (trains) RETURN_IF_ERROR(UpdateStatistics(formed));
    const std::string name = node->output(0)->name();
    RETURN_IF_ERROR(MoveOutput(node->output(0), formed->output(0)));
    RETURN_IF_ERROR(MoveOutput(node->output(1), trains ? formed->output(1) : node->input(kMeanInput)));
    RETURN_IF_ERROR(MoveOutput(node->output(2), trains ? formed->output(2) : node->input(kVarianceInput)));
    graph_.Erase(node);
    if (graph_.FindValue(name) == nullptr) graph_.Rename(formed->output(0), name);
    return OkStatus();
  }

  StatusOr<Node*> InsertBatchNorm(const Node* node, bool trains) {
    NodeSpec spec{"BatchNormalization", node->inputs(), node->attributes(), {}, node->origin(), {}};
    spec.attributes.Set("training_mode", int64_t{trains});
    spec.output_names = {node->output(0)->name()};
    if (trains) {
      spec.output_names.push_back(node->input(kMeanInput)->name() + "_new");
      spec.output_names.push_back(node->input(kVarianceInput)->name() + "_new");
    }
    return graph_.Insert(const_cast<Node*>(node), std::move(spec));
  }

  Status MoveOutput(Value* from, Value* to) {
    if (from == nullptr) return OkStatus();
    for (Value* state : graph_.states()) {  // statistics that are used but no longer updated
      if (state->update() == from && to == state) graph_.SetUpdate(state, nullptr);
    }
    RETURN_IF_ERROR(graph_.ReplaceUses(from, to));
    const std::map<std::string, Value*, std::less<>> roles = graph_.roles();
    for (const auto& [role, holder] : roles) {
      if (holder == from) graph_.SetRole(role, to);
    }
    return OkStatus();
  }

  // Running statistics are buffers, whatever the reader took them for.
  void ClassifyStatistics(const Node& node) {
    for (const size_t index : {kMeanInput, kVarianceInput}) {
      const Value* value = node.input(index);
      const StateEntry* entry = value == nullptr ? nullptr : program_.FindState(value->name());
      if (entry == nullptr || entry->state_class == StateClass::kBuffer) continue;
      StateEntry buffer = *entry;
      buffer.state_class = StateClass::kBuffer;
      buffer.role = "buffer";
      MoveInitial(CanonicalName(*entry), CanonicalName(buffer));
      program_.ReplaceState(value->name(), std::move(buffer));
      changed_ = true;
    }
  }

  void MoveInitial(const std::string& from, const std::string& to) {
    auto node = program_.initial.extract(from);
    if (node.empty()) return;
    node.key() = to;
    program_.initial.insert(std::move(node));
  }

  // mean := mean_new. A second node with the same statistics goes on from what the first made of them.
  Status UpdateStatistics(Node* node) {
    for (size_t k = 0; k < 2; ++k) {
      Value* input = node->input(kMeanInput + k);
      Value* updated = node->output(1 + k);
      if (input->kind() == ValueKind::kIntermediate) continue;  // already chained
      if (input->kind() != ValueKind::kState) {
        return InvalidModelError(node->Describe() + ": running statistics '" + input->name() +
                                 "' must be an initializer to be updated in training");
      }
      if (input->update() == updated || !updated->consumers().empty()) continue;  // done in an earlier run
      if (input->update() != nullptr) graph_.SetInput(node, kMeanInput + k, input->update());
      graph_.SetUpdate(input, updated);
      changed_ = true;
    }
    return OkStatus();
  }

  Program& program_;
  Graph& graph_;
  const SetModeOptions& options_;
  bool changed_ = false;
};

class SetModePass : public Pass {
 public:
  explicit SetModePass(SetModeOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "set_mode"; }

  StatusOr<bool> Run(Program& program) const override {
    Graph* graph = program.FindGraph(options_.graph);
    if (graph == nullptr) return InvalidModelError("set_mode: no graph '" + options_.graph + "'");
    return ModeSetter(program, *graph, options_).Run();
  }

 private:
  SetModeOptions options_;
};

}  // namespace

std::unique_ptr<Pass> SetMode(const SetModeOptions& options) { return std::make_unique<SetModePass>(options); }

}  // namespace onnxtrain
