// SPDX-License-Identifier: Apache-2.0
// The part of a graph that gradients flow through: the nodes and values on differentiable paths from targets to the
// loss. An edge counts when both ends are of a floating type and the operator's definition does not stop gradients
// there.
#ifndef ONNXTRAIN_PASSES_GRADIENT_PATH_H_
#define ONNXTRAIN_PASSES_GRADIENT_PATH_H_

#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace onnxtrain {

class GradientPath {
 public:
  // Of the graph as it is now; values and nodes are borrowed.
  GradientPath(const Graph& graph, const std::vector<Value*>& targets, const Value* loss);

  bool Contains(const Value* value) const { return depends_.contains(value) && feeds_.contains(value); }
  // In graph order. Each has an input whose gradient is wanted.
  const std::vector<Node*>& nodes() const { return nodes_; }
  // Whether dL/d input is wanted.
  bool Wants(const Node& node, size_t index) const;

 private:
  void Reach(const Node& node);
  void Collect(Node& node);

  std::unordered_set<const Value*> depends_;  // on a target
  std::unordered_set<const Value*> feeds_;    // the loss
  std::vector<Node*> nodes_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_GRADIENT_PATH_H_
