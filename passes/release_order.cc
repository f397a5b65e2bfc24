// SPDX-License-Identifier: Apache-2.0
#include "passes/release_order.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace onnxtrain {
namespace {

class ReleaseOrder {
 public:
  // `forward` are the nodes that stood in the graph before.
  ReleaseOrder(Graph& graph, size_t forward) : graph_(graph) {
    const std::vector<Node*> nodes = graph.NodesInOrder();
    for (size_t i = forward; i < nodes.size(); ++i) places_[nodes[i]] = i;
  }

  // `gradients` of all targets.
  void Sort(std::vector<const Value*> gradients) {
    std::stable_sort(gradients.begin(), gradients.end(),
                     [&](const Value* a, const Value* b) { return PlaceOf(a) < PlaceOf(b); });
    std::vector<Node*> cone;
    for (const Value* gradient : gradients) Collect(gradient, cone);
    const std::vector<Node*> nodes = graph_.NodesInOrder();
    for (Node* node : nodes) {
      if (places_.contains(node)) cone.push_back(node);  // what no gradient needs
    }
    for (Node* node : cone) graph_.MoveBefore(node, nullptr);
  }

 private:
  size_t PlaceOf(const Value* value) const {
    auto found = places_.find(value->producer());
    return found == places_.end() ? 0 : found->second;
  }

  // Appends the nodes that the value needs and that are not placed yet, inputs first. Without recursion: cones are
  // deep.
  void Collect(const Value* value, std::vector<Node*>& placed) {
    std::vector<Node*> stack;
    std::set<size_t> cone;  // by place, which is a topological order
    if (places_.contains(value->producer())) stack.push_back(value->producer());
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      if (!cone.insert(places_.at(node)).second) continue;
      by_place_[places_.at(node)] = node;
      for (const Value* input : node->inputs()) {
        if (input != nullptr && places_.contains(input->producer())) stack.push_back(input->producer());
      }
    }
    for (const size_t place : cone) {
      placed.push_back(by_place_.at(place));
      places_.erase(by_place_.at(place));
    }
  }

  Graph& graph_;
  std::unordered_map<const Node*, size_t> places_;  // of new nodes that are not placed yet
  std::unordered_map<size_t, Node*> by_place_;
};

}  // namespace

void OrderByRelease(Graph& graph, size_t forward, std::vector<const Value*> gradients) {
  ReleaseOrder(graph, forward).Sort(std::move(gradients));
}

}  // namespace onnxtrain
