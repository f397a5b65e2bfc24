// SPDX-License-Identifier: Apache-2.0
#include "passes/build_backward.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/gradient.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

struct Target {
  std::string role;  // of its gradient
  Value* value;
};

// Whether dL/d input may be other than zero when dL/d some output is.
bool IsDifferentiableEdge(const Node& node, size_t index) {
  const Value* input = node.input(index);
  if (input == nullptr || !IsFloating(input->type().dtype)) return false;
  const std::vector<int>& stops = node.def().stop_gradient_inputs;
  return std::find(stops.begin(), stops.end(), static_cast<int>(index)) == stops.end();
}

// The nodes and values on differentiable paths from the targets to the loss.
class GradientPath {
 public:
  GradientPath(const Graph& graph, const std::vector<Target>& targets, const Value* loss) {
    for (const Target& target : targets) depends_.insert(target.value);
    for (const auto& node : graph.nodes()) Reach(*node);
    feeds_.insert(loss);
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) Collect(**node);
    std::reverse(nodes_.begin(), nodes_.end());
  }

  bool Contains(const Value* value) const { return depends_.contains(value) && feeds_.contains(value); }
  // In graph order.
  const std::vector<Node*>& nodes() const { return nodes_; }
  // Whether dL/d input is wanted.
  bool Wants(const Node& node, size_t index) const {
    return IsDifferentiableEdge(node, index) && depends_.contains(node.input(index));
  }

 private:
  void Reach(const Node& node) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (!Wants(node, i)) continue;
      for (const Value* output : node.outputs()) {
        if (output != nullptr && IsFloating(output->type().dtype)) depends_.insert(output);
      }
      return;
    }
  }

  void Collect(Node& node) {
    const bool on_path = std::any_of(node.outputs().begin(), node.outputs().end(), [&](const Value* output) {
      return output != nullptr && Contains(output);
    });
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

  std::unordered_set<const Value*> depends_;  // on a target
  std::unordered_set<const Value*> feeds_;    // the loss
  std::vector<Node*> nodes_;
};

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

// The walk itself.
class Differentiator {
 public:
  Differentiator(Graph& graph, const GradientPath& path)
      : graph_(graph), path_(path), parameter_nodes_(NodesWithoutData(graph)) {
    for (size_t i = 0; i < path.nodes().size(); ++i) places_[path.nodes()[i]] = static_cast<int>(i);
    for (const Node* node : path.nodes()) {
      int& missing = missing_[node];
      for (const Value* output : node->outputs()) missing += output == nullptr ? 0 : UsesOnPath(output);
    }
  }

  Status Run(Value* loss, Value* seed) {
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

  Value* GradientOf(const Value* value) const {
    auto found = gradients_.find(value);
    return found == gradients_.end() ? nullptr : found->second;
  }

 private:
  // Smallest first: parameter-only nodes, then the last in the graph.
  std::pair<int, int> KeyOf(const Node* node) const {
    return {parameter_nodes_.contains(node) ? 0 : 1, -places_.at(node)};
  }

  // Edges over which gradients of the value will arrive.
  int UsesOnPath(const Value* value) const {
    int edges = 0;
    for (const Node* consumer : std::set<const Node*>(value->consumers().begin(), value->consumers().end())) {
      if (!places_.contains(consumer)) continue;
      for (size_t i = 0; i < consumer->inputs().size(); ++i) {
        edges += consumer->input(i) == value && path_.Wants(*consumer, i);
      }
    }
    return edges;
  }

  void Contribute(const Value* value, Value* gradient) {
    Value*& total = gradients_[value];
    if (total == nullptr) {
      total = gradient;
      return;
    }
    GraphBuilder build(graph_, nullptr, "gradient of '" + value->name() + "'");
    total = build.Op("Add", {total, gradient}, {}, value->name() + "_grad");
    CHECK_WITH(build.ok(), build.status().message());
  }

  Status Differentiate(Node& node) {
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

  StatusOr<std::vector<Value*>> ApplyRule(const Node& node, std::vector<Value*> output_gradients,
                                          const std::vector<bool>& wanted) {
    const std::string origin = "gradient of " + (node.origin().empty() ? node.Describe() : node.origin());
    GraphBuilder build(graph_, nullptr, origin);
    GradientContext context(node, build, std::move(output_gradients), wanted);
    RETURN_IF_ERROR(node.def().gradient(context).Prepend("gradient of " + node.Describe()));
    RETURN_IF_ERROR(build.status().Prepend("gradient of " + node.Describe()));
    return context.input_gradients();
  }

  // One edge is done: its gradient is added, and the producer becomes ready with its last edge.
  Status Deliver(const Node& node, size_t index, Value* gradient) {
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

  Graph& graph_;
  const GradientPath& path_;
  std::unordered_set<const Node*> parameter_nodes_;
  std::unordered_map<const Node*, int> places_;   // in path order
  std::unordered_map<const Node*, int> missing_;  // edges into the node's outputs that have not delivered yet
  std::unordered_map<const Value*, Value*> gradients_;
  std::set<std::pair<int, int>> ready_;
};

StatusOr<Target> NamedTarget(const Graph& graph, const std::string& name) {
  Value* value = graph.FindValue(name);
  if (value == nullptr) {
    return UsageError("no value named '" + name + "' in graph '" + graph.name() + "' to differentiate against");
  }
  if (!IsFloating(value->type().dtype)) {
    return UsageError("cannot differentiate against '" + name + "' of type " + ToString(value->type()) +
                      ": only floating-point values have a gradient");
  }
  return Target{"gradient/" + name, value};
}

StatusOr<std::vector<Target>> FindTargets(const Program& program, const Graph& graph,
                                          const BuildBackwardOptions& options) {
  std::vector<Target> targets;
  for (const std::string& name : options.with_respect_to) {
    ASSIGN_OR_RETURN(Target target, NamedTarget(graph, name));
    targets.push_back(std::move(target));
  }
  if (!options.with_respect_to.empty()) return targets;
  for (const StateEntry& entry : program.states()) {
    Value* value = entry.state_class == StateClass::kParameter ? graph.FindValue(entry.name) : nullptr;
    if (value != nullptr) targets.push_back({"gradient/" + entry.parameter, value});
  }
  return targets;
}

std::string ListRuleless(const std::vector<Node*>& nodes) {
  std::string text = std::to_string(nodes.size()) + (nodes.size() == 1 ? " operator" : " operators") +
                     " on the path from a parameter to the loss cannot be differentiated:";
  for (const Node* node : nodes) {
    text += "\n  " + node->Describe() + ": no gradient rule for " + node->op() + " (opset " +
            std::to_string(kCanonicalOpset) + ") and no function body to take it apart";
  }
  return text + "\nFreeze the parameters before them (--freeze), or export the model with other operators.";
}

// Every node of the path that has no rule, or an error that names them all.
Status DemandRules(const GradientPath& path) {
  std::vector<Node*> ruleless;
  for (Node* node : path.nodes()) {
    if (!node->def().gradient) ruleless.push_back(node);
  }
  return ruleless.empty() ? OkStatus() : InvalidModelError(ListRuleless(ruleless));
}

StatusOr<Value*> FindLoss(const Graph& graph) {
  Value* loss = graph.FindRole("loss");
  if (loss == nullptr) {
    return InvalidModelError("graph '" + graph.name() + "' has no loss (role \"loss\"): append_loss sets it");
  }
  if (!IsFloating(loss->type().dtype) || loss->type().elements() != 1) {
    return InvalidModelError("the loss '" + loss->name() + "' must be one floating-point number, found " +
                             ToString(loss->type()));
  }
  return loss;
}

// dL/dL: one, or the weight of the batch in the loss's own type and shape.
StatusOr<Value*> MakeSeed(Graph& graph, const Value& loss, bool weighted) {
  GraphBuilder build(graph, nullptr, "build_backward");
  if (!weighted) {
    const Tensor one = Tensor::Scalar(1.0).CastTo(loss.type().dtype);
    return build.Constant(one.Reshaped(loss.type().shape), "loss_grad");
  }
  Value* weight = graph.FindRole("loss_weight");
  if (weight == nullptr) {
    return InvalidModelError("graph '" + graph.name() + "' has no role \"loss_weight\": append_loss sets it");
  }
  Value* seed = build.Reshape(build.Cast(weight, loss.type().dtype), loss.type().shape);
  RETURN_IF_ERROR(build.status());
  return seed;
}

// Names and roles of the finished gradients. A gradient that several targets share keeps its first name.
size_t NameGradients(Graph& graph, const std::vector<Target>& targets, const Differentiator& differentiator,
                     BackwardReport* report) {
  std::set<const Value*> named;
  size_t found = 0;
  for (const Target& target : targets) {
    Value* gradient = differentiator.GradientOf(target.value);
    if (gradient == nullptr) {
      if (report != nullptr) report->without_path.push_back(target.role.substr(sizeof("gradient/") - 1));
      continue;
    }
    ++found;
    const std::string wanted = target.value->name() + "_grad";
    if (gradient->kind() == ValueKind::kIntermediate && gradient->name() != wanted && named.insert(gradient).second) {
      graph.Rename(gradient, graph.UniqueName(wanted));
    }
    graph.SetRole(target.role, gradient);
  }
  return found;
}

// Puts the new nodes into the order of release: for one gradient after the other what it still needs, and nothing else. So the
// gradient of a weight is computed before the gradient that goes on backwards, and its reduction starts earlier.
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

  // Appends the nodes that the value needs and that are not placed yet, inputs first. Without recursion: cones are deep.
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

class BuildBackwardPass : public Pass {
 public:
  explicit BuildBackwardPass(BuildBackwardOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "build_backward"; }

  StatusOr<bool> Run(Program& program) const override {
    Graph* graph = program.FindGraph(options_.graph);
    if (graph == nullptr) return InvalidModelError("build_backward: no graph '" + options_.graph + "'");
    ASSIGN_OR_RETURN(Value * loss, FindLoss(*graph));
    ASSIGN_OR_RETURN(std::vector<Target> targets, FindTargets(program, *graph, options_));
    const bool done = std::any_of(targets.begin(), targets.end(),
                                  [&](const Target& target) { return graph->FindRole(target.role) != nullptr; });
    if (done) return false;
    const GradientPath path(*graph, targets, loss);
    RETURN_IF_ERROR(DemandRules(path));
    const size_t forward = graph->nodes().size();
    ASSIGN_OR_RETURN(Value * seed, MakeSeed(*graph, *loss, options_.weighted));
    Differentiator differentiator(*graph, path);
    RETURN_IF_ERROR(differentiator.Run(loss, seed));
    if (NameGradients(*graph, targets, differentiator, options_.report) == 0) {
      return InvalidModelError("nothing to train: the loss '" + loss->name() + "' depends on none of " +
                               std::to_string(targets.size()) + " trainable tensors");
    }
    std::vector<const Value*> gradients;
    for (const Target& target : targets) {
      if (const Value* gradient = graph->FindRole(target.role)) gradients.push_back(gradient);
    }
    ReleaseOrder(*graph, forward).Sort(std::move(gradients));
    return true;
  }

 private:
  BuildBackwardOptions options_;
};

}  // namespace

std::unique_ptr<Pass> BuildBackward(const BuildBackwardOptions& options) {
  return std::make_unique<BuildBackwardPass>(options);
}

}  // namespace onnxtrain
