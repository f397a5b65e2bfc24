// SPDX-License-Identifier: Apache-2.0
#include "passes/replace_value.h"

#include <algorithm>
#include <set>

namespace onnxtrain {

bool IsGraphOutput(const Graph& graph, const Value* value) {
  return std::find(graph.outputs().begin(), graph.outputs().end(), value) != graph.outputs().end();
}

bool IsUpdate(const Graph& graph, const Value* value) {
  return std::any_of(graph.states().begin(), graph.states().end(),
                     [&](const Value* state) { return state->update() == value; });
}

bool HasRole(const Graph& graph, const Value* value) {
  return std::any_of(graph.roles().begin(), graph.roles().end(),
                     [&](const auto& role) { return role.second == value; });
}

Status ReplaceValue(Graph& graph, Value* from, Value* to) {
  RETURN_IF_ERROR(graph.ReplaceUses(from, to));
  std::vector<std::string> moved;
  for (const auto& [role, value] : graph.roles()) {
    if (value == from) moved.push_back(role);
  }
  for (std::string& role : moved) graph.SetRole(std::move(role), to);
  return OkStatus();
}

void EraseUnusedConstants(Graph& graph, const std::vector<Value*>& values) {
  const std::set<Value*> distinct(values.begin(), values.end());
  for (Value* value : distinct) {
    if (value == nullptr || value->kind() != ValueKind::kConstant || !value->consumers().empty()) continue;
    if (!IsGraphOutput(graph, value) && !IsUpdate(graph, value) && !HasRole(graph, value)) graph.EraseValue(value);
  }
}

}  // namespace onnxtrain
