// SPDX-License-Identifier: Apache-2.0
#include "graph/program_metadata.h"

#include <algorithm>
#include <map>

#include "graph/text_reader.h"
#include "graph/text_writer.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kState = "state.";
constexpr std::string_view kLayout = "layout";

std::string StateText(const Program& program, const StateEntry& entry) {
  std::string text(NameOf(entry.state_class));
  const TensorType* type = StateTypeInGraphs(program, entry.name);
  if (entry.bucket >= 0) text += " bucket=" + std::to_string(entry.bucket);
  if (entry.sharded) text += " sharded";
  if (type == nullptr || !(*type == entry.type)) text += " type=" + TypeText(entry.type);
  const std::string canonical = entry.bucket >= 0 ? entry.role : entry.role + "/" + entry.parameter;
  if (canonical != std::string(NameOf(entry.state_class)) + "/" + entry.name) text += " " + canonical;
  return text;
}

}  // namespace

const TensorType* StateTypeInGraphs(const Program& program, const std::string& state) {
  for (const auto& [name, graph] : program.graphs()) {
    const Value* value = graph.FindValue(state);
    if (value != nullptr && value->kind() == ValueKind::kState) return &value->type();
  }
  return nullptr;
}

ProgramFacts ProgramMetadata(const Program& program) {
  ProgramFacts metadata;
  if (program.world_size != 1) metadata.emplace_back("world_size", std::to_string(program.world_size));
  if (program.accumulation != 1) metadata.emplace_back("accumulation", std::to_string(program.accumulation));
  for (const StateEntry& entry : program.states()) {
    metadata.emplace_back(std::string(kState) + entry.name, StateText(program, entry));
  }
  if (program.layout().empty()) return metadata;
  const std::string layout = program.layout().ToString();
  std::string_view text = layout;
  for (int line = -1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    metadata.emplace_back(line < 0 ? std::string(kLayout) : std::string(kLayout) + "." + std::to_string(line),
                          std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return metadata;
}

// Initial values under the name of the state of `graph` that is that tensor, or else under their own.
std::vector<std::pair<std::string, const Tensor*>> InitialValues(const Program& program, const Graph& graph) {
  std::map<std::string, std::string> state_of;
  for (const StateEntry& entry : program.states()) {
    const Value* value = graph.FindValue(entry.name);
    if (entry.bucket < 0 && value != nullptr && value->kind() == ValueKind::kState) {
      state_of.emplace(CanonicalName(entry), entry.name);
    }
  }
  std::vector<std::pair<std::string, const Tensor*>> initial;
  for (const auto& [canonical, tensor] : program.initial) {
    const auto state = state_of.find(canonical);
    initial.emplace_back(state != state_of.end() ? state->second : std::string(kInitialPrefix) + canonical, &tensor);
  }
  return initial;
}

std::vector<const Value*> StatesInTableOrder(const Program& program, const Graph& graph) {
  std::vector<const Value*> states;
  for (const StateEntry& entry : program.states()) {
    const Value* value = graph.FindValue(entry.name);
    if (value != nullptr && value->kind() == ValueKind::kState) states.push_back(value);
  }
  for (const Value* state : graph.states()) {
    if (program.FindState(state->name()) == nullptr) states.push_back(state);
  }
  return states;
}

}  // namespace onnxtrain
