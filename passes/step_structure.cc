// SPDX-License-Identifier: Apache-2.0
#include "passes/step_structure.h"

#include <algorithm>
#include <unordered_set>

#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

const std::vector<OptimizerKind>& Optimizers() {
  static const std::vector<OptimizerKind> kinds = {
      {"onnxtrain.SGD", {"momentum"}},
      {"onnxtrain.Adam", {"moment1", "moment2"}},
      {"onnxtrain.AdamW", {"moment1", "moment2"}},
      {"onnxtrain.Adagrad", {"squared_sum"}},
      {"onnxtrain.Lion", {"momentum"}},
  };
  return kinds;
}

bool NameIsFree(const Program& program, std::string_view name) {
  if (program.FindState(name) != nullptr) return false;
  return std::none_of(program.graphs().begin(), program.graphs().end(),
                      [&](const auto& entry) { return entry.second.FindValue(name) != nullptr; });
}

bool Needed(const Node& node, const std::unordered_set<const Value*>& needed) {
  if (node.def().collective || node.def().side_effect) return true;
  return std::any_of(node.outputs().begin(), node.outputs().end(),
                     [&](const Value* output) { return output != nullptr && needed.contains(output); });
}

}  // namespace

const OptimizerKind* FindOptimizer(std::string_view op) {
  const std::vector<OptimizerKind>& kinds = Optimizers();
  auto found = std::find_if(kinds.begin(), kinds.end(), [&](const OptimizerKind& kind) { return kind.op == op; });
  return found == kinds.end() ? nullptr : &*found;
}

std::vector<Node*> OptimizerNodes(const Graph& graph) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) {
    if (FindOptimizer(node->op()) != nullptr) nodes.push_back(node.get());
  }
  return nodes;
}

Node* FindNode(const Graph& graph, std::string_view op) {
  for (const auto& node : graph.nodes()) {
    if (node->op() == op) return node.get();
  }
  return nullptr;
}

NodeOrder::NodeOrder(const Graph& graph) : nodes_(graph.NodesInOrder()) {
  for (size_t i = 0; i < nodes_.size(); ++i) places_[nodes_[i]] = static_cast<int>(i);
}

int NodeOrder::PlaceOf(const Node* node) const {
  return node == nullptr ? static_cast<int>(nodes_.size()) : places_.at(node);
}

Node* NodeOrder::Behind(int place) const {
  const size_t next = static_cast<size_t>(place + 1);
  return next < nodes_.size() ? nodes_[next] : nullptr;
}

int NodeOrder::FirstUse(const Value* value) const {
  int first = static_cast<int>(nodes_.size());
  for (const Node* consumer : value->consumers()) {
    auto found = places_.find(consumer);
    if (found != places_.end()) first = std::min(first, found->second);
  }
  return first;
}

std::string UniqueStateName(const Program& program, std::string_view wanted) {
  std::string name(wanted);
  for (int suffix = 1; !NameIsFree(program, name); ++suffix) name = std::string(wanted) + "_" + std::to_string(suffix);
  return name;
}

Value* StateValue(Graph& graph, const StateEntry& entry) {
  Value* value = graph.FindValue(entry.name);
  return value != nullptr ? value : graph.AddState(entry.name, entry.type);
}

Value* CounterState(Program& program, Graph& graph, std::string_view counter) {
  for (const StateEntry& entry : program.states()) {
    if (entry.state_class == StateClass::kCounter && entry.parameter == counter) return StateValue(graph, entry);
  }
  StateEntry entry{.name = UniqueStateName(program, counter),
                   .type = {DType::kInt64, {}},
                   .state_class = StateClass::kCounter,
                   .role = "counter",
                   .parameter = std::string(counter)};
  program.AddState(entry);
  return StateValue(graph, entry);
}

Status FreeName(Graph& graph, std::string_view name) {
  Value* value = graph.FindValue(name);
  if (value == nullptr) return OkStatus();
  if (value->kind() != ValueKind::kIntermediate) {
    return InvalidModelError("the name '" + std::string(name) +
                             "' is needed for a result of the training step, but an input or initializer of the model "
                             "has it: rename that one in the model");
  }
  graph.Rename(value, graph.UniqueName(name));
  return OkStatus();
}

Value* GradientIn(GraphBuilder& build, std::string_view parameter, Value* gradient, DType dtype) {
  const Node* cast = gradient->producer();
  const std::string role = "gradient/" + std::string(parameter);
  const bool was_computed_so = cast != nullptr && cast->op() == "Cast" && cast->input(0)->type().dtype == dtype;
  if (!was_computed_so || build.graph().FindRole(role) != gradient) return build.Cast(gradient, dtype);
  build.graph().SetRole(role, cast->input(0));
  return cast->input(0);
}

void EraseDeadNodes(Graph& graph) {
  std::unordered_set<const Value*> needed(graph.outputs().begin(), graph.outputs().end());
  for (const Value* state : graph.states()) needed.insert(state->update());
  std::vector<Node*> nodes = graph.NodesInOrder();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (Needed(**node, needed)) {
      needed.insert((*node)->inputs().begin(), (*node)->inputs().end());
    } else {
      graph.Erase(*node);
    }
  }
  auto unused = [&](const Value* value) { return value->consumers().empty() && !needed.contains(value); };
  for (Value* constant : std::vector<Value*>(graph.constants())) {
    if (unused(constant)) graph.EraseValue(constant);
  }
  for (Value* state : std::vector<Value*>(graph.states())) {
    if (unused(state) && state->update() == nullptr) graph.EraseValue(state);
  }
}

std::vector<Graph*> TrainingGraphs(Program& program) {
  std::vector<Graph*> graphs;
  for (const char* name : {"step", "first", "middle", "last"}) {
    if (Graph* graph = program.FindGraph(name)) graphs.push_back(graph);
  }
  return graphs;
}

Graph* UpdatingGraph(Program& program) {
  Graph* step = program.FindGraph("step");
  return step != nullptr ? step : program.FindGraph("last");
}

}  // namespace onnxtrain
