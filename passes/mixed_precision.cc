// SPDX-License-Identifier: Apache-2.0
#include "passes/mixed_precision.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "graph/graph_builder.h"
#include "passes/precision_classes.h"
#include "passes/replace_value.h"

namespace onnxtrain {
namespace {

constexpr const char* kOrigin = "mixed_precision";

bool IsFloat(const Value* value) { return value != nullptr && value->type().dtype == DType::kFloat; }

// The finite numbers of the 16-bit type, so that a mask of -3.4e38 does not become an infinity.
Tensor Saturated(const Tensor& tensor, DType dtype) {
  const float largest = dtype == DType::kBfloat16 ? Bfloat16ToFloat(0x7f7f) : 65504.0f;
  Tensor clamped = tensor.CastTo(DType::kFloat);
  float* values = reinterpret_cast<float*>(clamped.data());
  for (int64_t i = 0; i < clamped.type().elements(); ++i) {
    if (std::isfinite(values[i])) values[i] = std::clamp(values[i], -largest, largest);
  }
  return clamped.CastTo(dtype);
}

class GraphLowering {
 public:
  GraphLowering(Graph& graph, DType half) : graph_(graph), half_(half) {}

  StatusOr<bool> Run() {
    for (Node* node : graph_.NodesInOrder()) RETURN_IF_ERROR(Visit(node));
    EraseUnread();
    return changed_;
  }

 private:
  // Where a float value comes from decides the nodes of class follow that read it.
  enum class Source {
    kGiven,   // an input, a parameter, a constant, or one of these rearranged
    kHalf,    // computed in 16 bits
    kSingle,  // computed in float
  };

  Source SourceOf(const Value* value) const {
    if (computed_half_.contains(value)) return Source::kHalf;
    return given_.contains(value) || value->producer() == nullptr ? Source::kGiven : Source::kSingle;
  }

  static bool IsData(const PrecisionRule& rule, size_t input) {
    return rule.data_inputs == 0 || input < static_cast<size_t>(rule.data_inputs);
  }

  bool Reads(const Node& node, const PrecisionRule& rule, Source source) const {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (IsData(rule, i) && IsFloat(node.input(i)) && SourceOf(node.input(i)) == source) return true;
    }
    return false;
  }

  // Rows of a table of parameters: the first values of a language model.
  static bool IsLookup(const Node& node) {
    return node.op() == "Gather" && node.input(0)->kind() == ValueKind::kState && IsFloat(node.input(0));
  }

  Status Visit(Node* node) {
    if (IsWidening(*node)) {
      halves_[node->output(0)] = node->input(0);
      computed_half_.insert(node->output(0));
      return OkStatus();
    }
    const PrecisionRule* rule = FindPrecisionRule(node->op());
    if (rule == nullptr) return OkStatus();
    const bool half = Reads(*node, *rule, Source::kHalf);
    const bool single = Reads(*node, *rule, Source::kSingle);
    const bool given = Reads(*node, *rule, Source::kGiven);
    switch (rule->precision_class) {
      case PrecisionClass::kHalf:
        return half || single || given ? Lower(node, *rule) : OkStatus();
      case PrecisionClass::kMove:
        if (!half && !single && given && !IsLookup(*node)) MarkOutputs(*node, given_);
        if (IsLookup(*node)) return Lower(node, *rule);
        [[fallthrough]];
      case PrecisionClass::kFollow:
        return half && !single ? Lower(node, *rule) : OkStatus();
      case PrecisionClass::kRounded:
        if (IsFloat(node->input(0)) && SourceOf(node->input(0)) == Source::kHalf) {
          computed_half_.insert(node->output(0));
        }
        return OkStatus();
      case PrecisionClass::kSingle:
        return OkStatus();
    }
    return OkStatus();
  }

  bool IsWidening(const Node& node) const {
    return node.op() == "Cast" && IsFloat(node.output(0)) && node.input(0)->type().dtype == half_;
  }

  static void MarkOutputs(const Node& node, std::unordered_set<const Value*>& set) {
    for (const Value* output : node.outputs()) {
      if (IsFloat(output)) set.insert(output);
    }
  }

  // Puts the node's twin in 16 bits in its place.
  Status Lower(Node* node, const PrecisionRule& rule) {
    ASSIGN_OR_RETURN(Node * twin, InsertTwin(node, node, rule));
    std::vector<std::pair<Value*, std::string>> renamed;
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      Value* old = node->output(i);
      if (old == nullptr) continue;
      Value* replacement = twin->output(i);
      if (IsFloat(old)) {
        ASSIGN_OR_RETURN(replacement, Widen(node, replacement));
      }
      const std::string name = old->name();
      RETURN_IF_ERROR(ReplaceValue(graph_, old, replacement));
      if (replacement->name() != name) renamed.emplace_back(replacement, name);
    }
    graph_.Erase(node);
    for (const auto& [value, name] : renamed) graph_.Rename(value, graph_.UniqueName(name));
    return OkStatus();
  }

  // The same operator on 16-bit inputs, in front of `before`.
  StatusOr<Node*> InsertTwin(const Node* node, Node* before, const PrecisionRule& rule) {
    NodeSpec spec{node->op(), node->inputs(), node->attributes(), {}, node->origin(), {}};
    for (size_t i = 0; i < spec.inputs.size(); ++i) {
      if (!IsData(rule, i) || !IsFloat(spec.inputs[i])) continue;
      ASSIGN_OR_RETURN(spec.inputs[i], HalfOf(spec.inputs[i], before));
    }
    for (const Value* output : node->outputs()) {
      const bool narrowed = IsFloat(output);
      spec.output_names.push_back(output == nullptr ? "" : narrowed ? output->name() + "_half" : output->name());
    }
    changed_ = true;
    return graph_.Insert(before, std::move(spec));
  }

  StatusOr<Value*> Widen(Node* before, Value* half) {
    GraphBuilder build(graph_, before, kOrigin);
    Value* wide = build.Op("Cast", {half}, {{"to", static_cast<int64_t>(DType::kFloat)}}, half->name() + "_single");
    RETURN_IF_ERROR(build.status());
    halves_[wide] = half;
    computed_half_.insert(wide);
    widened_.push_back(wide);
    return wide;
  }

  // The value in 16 bits: what was computed so, or one Cast for all readers.
  StatusOr<Value*> HalfOf(Value* value, Node* before) {
    const auto known = halves_.find(value);
    if (known != halves_.end()) return known->second;
    Value* half = nullptr;
    if (value->constant() != nullptr) {
      half = graph_.AddConstant(value->name() + "_half", Saturated(*value->constant(), half_));
    } else if (given_.contains(value)) {
      ASSIGN_OR_RETURN(half, MovedHalf(value, before));
    } else {
      GraphBuilder build(graph_, before, kOrigin);
      half = build.Op("Cast", {value}, {{"to", static_cast<int64_t>(half_)}}, value->name() + "_half");
      RETURN_IF_ERROR(build.status());
    }
    changed_ = true;
    halves_[value] = half;
    return half;
  }

  // A rearranged parameter: the parameter is cast and its copy rearranged, so that sharded state can be gathered in 16
  // bits.
  StatusOr<Value*> MovedHalf(Value* value, Node* before) {
    Node* move = value->producer();
    ASSIGN_OR_RETURN(Node * twin, InsertTwin(move, before, *FindPrecisionRule(move->op())));
    for (size_t i = 0; i < move->outputs().size(); ++i) {
      if (IsFloat(move->output(i))) halves_[move->output(i)] = twin->output(i);
    }
    moved_.push_back(move);
    return halves_[value];
  }

  bool IsRead(const Value* value) const {
    return value != nullptr && (!value->consumers().empty() || IsGraphOutput(graph_, value) ||
                                IsUpdate(graph_, value) || HasRole(graph_, value));
  }

  // Casts that turned out to have no reader, float versions of what was rearranged, and constants behind them.
  void EraseUnread() {
    std::vector<Node*> nodes;
    for (Value* value : widened_) nodes.push_back(value->producer());
    nodes.insert(nodes.end(), moved_.begin(), moved_.end());
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const auto& outputs = (*node)->outputs();
      if (std::any_of(outputs.begin(), outputs.end(), [&](const Value* v) { return IsRead(v); })) continue;
      graph_.Erase(*node);
    }
    EraseUnusedConstants(graph_, graph_.constants());
  }

  Graph& graph_;
  const DType half_;
  bool changed_ = false;
  std::unordered_map<const Value*, Value*> halves_;   // by float value
  std::unordered_set<const Value*> computed_half_;    // float values of Source::kHalf
  std::unordered_set<const Value*> given_;            // outputs of Source::kGiven
  std::vector<Value*> widened_;
  std::vector<Node*> moved_;
};

class MixedPrecisionPass : public Pass {
 public:
  explicit MixedPrecisionPass(MixedPrecisionOptions options) : options_(options) {}

  std::string_view name() const override { return "mixed_precision"; }

  StatusOr<bool> Run(Program& program) const override {
    if (options_.compute == DType::kFloat) return false;
    if (options_.compute != DType::kBfloat16) {
      return UsageError("mixed_precision computes in bfloat16; " + std::string(NameOf(options_.compute)) +
                        " would need a loss scale, which there is not yet");
    }
    for (const auto& [name, graph] : program.graphs()) {
      for (const auto& [role, value] : graph.roles()) {
        if (!role.starts_with("gradient/")) continue;
        return InvalidModelError("mixed_precision: graph '" + name +
                                 "' has gradients already: build_backward comes after");
      }
    }
    bool changed = false;
    for (const auto& [name, unused] : program.graphs()) {
      ASSIGN_OR_RETURN(const bool lowered, GraphLowering(*program.FindGraph(name), options_.compute).Run());
      changed = changed || lowered;
    }
    return changed;
  }

 private:
  MixedPrecisionOptions options_;
};

}  // namespace

std::unique_ptr<Pass> MixedPrecision(const MixedPrecisionOptions& options) {
  return std::make_unique<MixedPrecisionPass>(options);
}

}  // namespace onnxtrain
