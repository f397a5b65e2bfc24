// SPDX-License-Identifier: Apache-2.0
#include "graph/program.h"

#include <algorithm>
#include <bit>

#include "graph/digest.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

// Text of an attribute with every bit of it; only digests read it.
struct AttributeText {
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(float value) const { return "f" + std::to_string(std::bit_cast<uint32_t>(value)); }
  std::string operator()(const std::string& value) const { return std::to_string(value.size()) + ":" + value; }
  std::string operator()(const Tensor& value) const {
    const std::string_view bytes(reinterpret_cast<const char*>(value.data()), value.bytes());
    return ToString(value.type()) + std::to_string(Fnv1a(bytes));
  }
  template <typename T>
  std::string operator()(const std::vector<T>& list) const {
    std::string text = "[";
    for (const T& item : list) text += (*this)(item) + ",";
    return text + "]";
  }
};

std::string TextOf(const StateEntry& entry) {
  std::string text = entry.name + "\n" + ToString(entry.type) + "\n" + std::string(NameOf(entry.state_class)) + "\n";
  text += entry.role + "\n" + entry.parameter + "\n" + std::to_string(entry.bucket) + (entry.sharded ? "s\n" : "w\n");
  return text;
}

std::string TextOfCollective(const Node& node) {
  std::string text = node.op();
  for (const auto& [name, value] : node.attributes().entries())
    text += " " + name + "=" + std::visit(AttributeText{}, value);
  for (const Value* input : node.inputs()) text += input == nullptr ? " -" : " " + ToString(input->type());
  return text + "\n";
}

auto FindEntry(std::vector<StateEntry>& states, std::string_view name) {
  return std::find_if(states.begin(), states.end(), [&](const StateEntry& entry) { return entry.name == name; });
}

}  // namespace

std::string_view NameOf(StateClass state_class) {
  switch (state_class) {
    case StateClass::kParameter:
      return "parameter";
    case StateClass::kFrozen:
      return "frozen";
    case StateClass::kBuffer:
      return "buffer";
    case StateClass::kOptimizerState:
      return "optimizer_state";
    case StateClass::kCounter:
      return "counter";
    case StateClass::kAccumulator:
      return "accumulator";
    case StateClass::kReplica:
      return "replica";
  }
  internal::CheckFailed(__FILE__, __LINE__, "state class", std::to_string(static_cast<int>(state_class)));
}

Program Program::Clone() const {
  Program copy;
  copy.states_ = states_;
  copy.layout_ = layout_;
  copy.world_size = world_size;
  copy.accumulation = accumulation;
  copy.initial = initial;
  for (const auto& [name, graph] : graphs_) copy.graphs_.emplace(name, graph.Clone(name));
  return copy;
}

const StateEntry* Program::FindState(std::string_view name) const {
  const auto found =
      std::find_if(states_.begin(), states_.end(), [&](const StateEntry& entry) { return entry.name == name; });
  return found == states_.end() ? nullptr : &*found;
}

void Program::AddState(StateEntry entry) {
  CHECK_WITH(FindState(entry.name) == nullptr, "two states named '" + entry.name + "'");
  states_.push_back(std::move(entry));
}

void Program::ReplaceState(std::string_view name, StateEntry entry) {
  const auto found = FindEntry(states_, name);
  CHECK_WITH(found != states_.end(), "no state named '" + std::string(name) + "'");
  CHECK_WITH(entry.name == name || FindState(entry.name) == nullptr, "two states named '" + entry.name + "'");
  *found = std::move(entry);
}

void Program::EraseState(std::string_view name) {
  const auto found = FindEntry(states_, name);
  CHECK_WITH(found != states_.end(), "no state named '" + std::string(name) + "'");
  for (const auto& [graph_name, graph] : graphs_) {
    const Value* value = graph.FindValue(name);
    CHECK_WITH(value == nullptr || value->kind() != ValueKind::kState, found->name + " is used by graph " + graph_name);
  }
  states_.erase(found);
}

Graph* Program::FindGraph(std::string_view name) {
  const auto found = graphs_.find(name);
  return found == graphs_.end() ? nullptr : &found->second;
}

const Graph* Program::FindGraph(std::string_view name) const {
  const auto found = graphs_.find(name);
  return found == graphs_.end() ? nullptr : &found->second;
}

Graph& Program::AddGraph(Graph graph) {
  std::string name = graph.name();
  return graphs_.insert_or_assign(std::move(name), std::move(graph)).first->second;
}

void Program::EraseGraph(std::string_view name) {
  const auto found = graphs_.find(name);
  CHECK_WITH(found != graphs_.end(), "no graph named '" + std::string(name) + "'");
  graphs_.erase(found);
}

std::string CanonicalName(const StateEntry& entry) {
  CHECK_WITH(entry.bucket < 0, "'" + entry.name + "' holds the parts of many canonical tensors");
  return entry.role + "/" + entry.parameter;
}

uint64_t Digest(const Program& program) {
  uint64_t digest = Fnv1a(std::to_string(program.world_size) + " " + std::to_string(program.accumulation) + "\n");
  for (const StateEntry& entry : program.states()) digest = Fnv1a(TextOf(entry), digest);
  digest = Fnv1a(program.layout().ToString(), digest);
  for (const auto& [name, graph] : program.graphs()) {
    digest = Fnv1a("\ngraph " + name + "\n", digest);
    for (const auto& node : graph.nodes()) {
      if (node->def().collective) digest = Fnv1a(TextOfCollective(*node), digest);
    }
  }
  return digest;
}

}  // namespace onnxtrain
