// SPDX-License-Identifier: Apache-2.0
#include "passes/differentiator.h"

#include <algorithm>

#include "graph/gradient.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

// Nodes that depend on no graph input: what a parameter goes through before it meets data.
std::unordered_set<const Node*> NodesWithoutData(const Graph& graph) {
  std::unordered_set<const Node*> nodes;
  for (const auto& node : graph.nodes()) {
    const bool without = std::all_of(node->inputs().begin(), node->inputs().end(), [&](const Value* input) {
      return input == nullptr || input->kind() == ValueKind::kConstant || input->kind() == ValueKind::kState ||
             nodes.contains(input->producer());
    });
    if (without) nodes.insert(node.get());
  }
  return nodes;
}

}  // namespace

Differentiator::Differentiator(Graph& graph, const GradientPath& path)
    : graph_(graph), path_(path), parameter_nodes_(NodesWithoutData(graph)) {
  for (size_t i = 0; i < path.nodes().size(); ++i) places_[path.nodes()[i]] = static_cast<int>(i);
  for (const Node* node : path.nodes()) {
    int& missing = missing_[node];
    for (const Value* output : node->outputs()) missing += output == nullptr ? 0 : UsesOnPath(output);
  }
}

Status Differentiator::Run(Value* loss, Value* seed) {
  Contribute(loss, seed);
  for (Node* node : path_.nodes()) {
    if (missing_.at(node) == 0) ready_.insert(KeyOf(node));
  }
  while (!ready_.empty()) {
    Node* node = path_.nodes()[static_cast<size_t>(-ready_.begin()->second)];
    ready_.erase(ready_.begin());
    RETURN_IF_ERROR(Differentiate(*node));
  }
  return OkStatus();
}

Value* Differentiator::GradientOf(const Value* value) const {
  auto found = gradients_.find(value);
  return found == gradients_.end() ? nullptr : found->second;
}

// Smallest first: parameter-only nodes, then the last in the graph.
std::pair<int, int> Differentiator::KeyOf(const Node* node) const {
  return {parameter_nodes_.contains(node) ? 0 : 1, -places_.at(node)};
}

// Edges over which gradients of the value will arrive.
int Differentiator::UsesOnPath(const Value* value) const {
  int edges = 0;
  for (const Node* consumer : std::set<const Node*>(value->consumers().begin(), value->consumers().end())) {
    if (!places_.contains(consumer)) continue;
    for (size_t i = 0; i < consumer->inputs().size(); ++i) {
      edges += consumer->input(i) == value && path_.Wants(*consumer, i);
    }
  }
  return edges;
}

void Differentiator::Contribute(const Value* value, Value* gradient) {
  Value*& total = gradients_[value];
  if (total == nullptr) {
    total = gradient;
    return;
  }
  GraphBuilder build(graph_, nullptr, "gradient of '" + value->name() + "'");
  total = build.Op("Add", {total, gradient}, {}, value->name() + "_grad");
  CHECK_WITH(build.ok(), build.status().message());
}

Status Differentiator::Differentiate(Node& node) {
  std::vector<Value*> output_gradients;
  bool any = false;
  for (const Value* output : node.outputs()) {
    output_gradients.push_back(output == nullptr ? nullptr : GradientOf(output));
    any |= output_gradients.back() != nullptr;
  }
  std::vector<bool> wanted;
  for (size_t i = 0; i < node.inputs().size(); ++i) wanted.push_back(path_.Wants(node, i));
  std::vector<Value*> input_gradients(wanted.size(), nullptr);
  if (any) {
    ASSIGN_OR_RETURN(input_gradients, ApplyRule(node, std::move(output_gradients), wanted));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) RETURN_IF_ERROR(Deliver(node, i, input_gradients[i]));
  }
  return OkStatus();
}

StatusOr<std::vector<Value*>> Differentiator::ApplyRule(const Node& node, std::vector<Value*> output_gradients,
                                                        const std::vector<bool>& wanted) {
  const std::string origin = "gradient of " + (node.origin().empty() ? node.Describe() : node.origin());
  GraphBuilder build(graph_, nullptr, origin);
  GradientContext context(node, build, std::move(output_gradients), wanted);
  RETURN_IF_ERROR(node.def().gradient(context).Prepend("gradient of " + node.Describe()));
  RETURN_IF_ERROR(build.status().Prepend("gradient of " + node.Describe()));
  return context.input_gradients();
}

// One edge is done: its gradient is added, and the producer becomes ready with its last edge.
Status Differentiator::Deliver(const Node& node, size_t index, Value* gradient) {
  Value* input = node.input(index);
  if (gradient != nullptr) {
    if (gradient->type() != input->type()) {
      return InternalError("the gradient rule of " + node.Describe() + " gives " + ToString(gradient->type()) +
                           " for input " + std::to_string(index) + " of type " + ToString(input->type()));
    }
    Contribute(input, gradient);
  }
  Node* producer = input->producer();
  auto found = missing_.find(producer);
  if (producer != nullptr && found != missing_.end() && --found->second == 0) ready_.insert(KeyOf(producer));
  return OkStatus();
}

}  // namespace onnxtrain
