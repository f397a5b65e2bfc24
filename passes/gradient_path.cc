// SPDX-License-Identifier: Apache-2.0
#include "passes/gradient_path.h"

#include <algorithm>

#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

// Whether dL/d input may be other than zero when dL/d some output is.
bool IsDifferentiableEdge(const Node& node, size_t index) {
  const Value* input = node.input(index);
  if (input == nullptr || !IsFloating(input->type().dtype)) return false;
  const std::vector<int>& stops = node.def().stop_gradient_inputs;
  return std::find(stops.begin(), stops.end(), static_cast<int>(index)) == stops.end();
}

}  // namespace

GradientPath::GradientPath(const Graph& graph, const std::vector<Value*>& targets, const Value* loss)
    : depends_(targets.begin(), targets.end()), feeds_{loss} {
  for (const auto& node : graph.nodes()) Reach(*node);
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) Collect(**node);
  std::reverse(nodes_.begin(), nodes_.end());
}

bool GradientPath::Wants(const Node& node, size_t index) const {
  return IsDifferentiableEdge(node, index) && depends_.contains(node.input(index));
}

void GradientPath::Reach(const Node& node) {
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (!Wants(node, i)) continue;
    for (const Value* output : node.outputs()) {
      if (output != nullptr && IsFloating(output->type().dtype)) depends_.insert(output);
    }
    return;
  }
}

void GradientPath::Collect(Node& node) {
  const bool on_path = std::any_of(node.outputs().begin(), node.outputs().end(),
                                   [&](const Value* output) { return output != nullptr && Contains(output); });
  if (!on_path) return;
  bool wanted = false;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (!IsDifferentiableEdge(node, i)) continue;
    feeds_.insert(node.input(i));
    wanted |= Wants(node, i);
  }
  // A target that a node writes may itself depend on nothing else: the walk ends there.
  if (wanted) nodes_.push_back(&node);
}

}  // namespace onnxtrain
