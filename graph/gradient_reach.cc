// SPDX-License-Identifier: Apache-2.0
#include "graph/gradient_reach.h"

#include <algorithm>

#include "graph/op_registry.h"

namespace onnxtrain {

bool PassesGradient(const Node& node, size_t input) {
  const Value* value = node.input(input);
  if (value == nullptr || !IsFloating(value->type().dtype)) return false;
  const std::vector<int>& stops = node.def().stop_gradient_inputs;
  if (std::find(stops.begin(), stops.end(), static_cast<int>(input)) != stops.end()) return false;
  return std::any_of(node.outputs().begin(), node.outputs().end(),
                     [](const Value* output) { return output != nullptr && IsFloating(output->type().dtype); });
}

std::unordered_set<const Value*> GradientReach(const Graph& graph, std::span<const Value* const> losses) {
  std::unordered_set<const Value*> reached(losses.begin(), losses.end());
  const std::vector<Node*> nodes = graph.NodesInOrder();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const bool on_path = std::any_of((*node)->outputs().begin(), (*node)->outputs().end(), [&](const Value* output) {
      return output != nullptr && IsFloating(output->type().dtype) && reached.contains(output);
    });
    for (size_t i = 0; on_path && i < (*node)->inputs().size(); ++i) {
      if (PassesGradient(**node, i)) reached.insert((*node)->input(i));
    }
  }
  return reached;
}

}  // namespace onnxtrain
