// SPDX-License-Identifier: Apache-2.0
// Walks a gradient path from the loss backwards and lets the operators' rules append the gradient nodes.
//
// Among the nodes whose output gradients are complete, those that depend on no graph input (a transposed weight) come
// first, then the one that stands last in the graph. Contributions to one value are added in the order in which they
// come.
#ifndef ONNXTRAIN_PASSES_DIFFERENTIATOR_H_
#define ONNXTRAIN_PASSES_DIFFERENTIATOR_H_

#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "passes/gradient_path.h"

namespace onnxtrain {

class Differentiator {
 public:
  // Both are borrowed. Every node of the path has a gradient rule.
  Differentiator(Graph& graph, const GradientPath& path);

  // `seed` is dL/dL, of the loss's type. New nodes go to the end of the graph. Fails as rules fail, naming the node.
  Status Run(Value* loss, Value* seed);
  // Null when no rule gave one.
  Value* GradientOf(const Value* value) const;

 private:
  std::pair<int, int> KeyOf(const Node* node) const;
  int UsesOnPath(const Value* value) const;
  void Contribute(const Value* value, Value* gradient);
  Status Differentiate(Node& node);
  StatusOr<std::vector<Value*>> ApplyRule(const Node& node, std::vector<Value*> output_gradients,
                                          const std::vector<bool>& wanted);
  Status Deliver(const Node& node, size_t index, Value* gradient);

  Graph& graph_;
  const GradientPath& path_;
  const std::unordered_set<const Node*> parameter_nodes_;
  std::unordered_map<const Node*, int> places_;   // in path order
  std::unordered_map<const Node*, int> missing_;  // edges into the node's outputs that have not delivered yet
  std::unordered_map<const Value*, Value*> gradients_;
  std::set<std::pair<int, int>> ready_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_DIFFERENTIATOR_H_
