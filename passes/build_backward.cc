// SPDX-License-Identifier: Apache-2.0
#include "passes/build_backward.h"

#include <algorithm>
#include <set>

#include "graph/function_inliner.h"
#include "graph/graph_builder.h"
#include "graph/op_registry.h"
#include "passes/append_loss.h"
#include "passes/differentiator.h"
#include "passes/gradient_path.h"
#include "passes/release_order.h"

namespace onnxtrain {
namespace {

struct Target {
  std::string role;  // of its gradient
  Value* value;
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

std::vector<Value*> ValuesOf(const std::vector<Target>& targets) {
  std::vector<Value*> values;
  for (const Target& target : targets) values.push_back(target.value);
  return values;
}

std::string ListRuleless(const std::vector<std::string>& nodes) {
  std::string text = std::to_string(nodes.size()) + (nodes.size() == 1 ? " operator" : " operators") +
                     " on the path from a parameter to the loss cannot be differentiated:";
  for (const std::string& node : nodes) text += "\n  " + node;
  return text + "\nFreeze the parameters before them (--freeze), or export the model with other operators.";
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

class BuildBackwardPass : public Pass {
 public:
  explicit BuildBackwardPass(BuildBackwardOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "build_backward"; }

  StatusOr<bool> Run(Program& program) const override {
    Graph* graph = program.FindGraph(options_.graph);
    if (graph == nullptr) return InvalidModelError("build_backward: no graph '" + options_.graph + "'");
    if (graph->FindRole("loss") == nullptr) {  // the graph's own
      AppendLossOptions own;
      own.graph = options_.graph;
      RETURN_IF_ERROR(AppendLoss(own)->Run(program).status());
    }
    ASSIGN_OR_RETURN(Value * loss, FindLoss(*graph));
    ASSIGN_OR_RETURN(std::vector<Target> targets, FindTargets(program, *graph, options_));
    const bool done = std::any_of(targets.begin(), targets.end(),
                                  [&](const Target& target) { return graph->FindRole(target.role) != nullptr; });
    if (done) return false;
    ASSIGN_OR_RETURN(const bool decomposed, Decompose(program, *graph));
    if (decomposed) {  // values of the old nodes are gone
      ASSIGN_OR_RETURN(loss, FindLoss(*graph));
      ASSIGN_OR_RETURN(targets, FindTargets(program, *graph, options_));
    }
    const GradientPath path(*graph, ValuesOf(targets), loss);
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
    OrderByRelease(*graph, forward, std::move(gradients));
    return true;
  }

 private:
  // Nodes of the path without a rule become their function bodies, which may hold such nodes again. Whether there were
  // any; an error names all that have no body.
  StatusOr<bool> Decompose(const Program& program, Graph& graph) const {
    for (bool decomposed = false;; decomposed = true) {
      ASSIGN_OR_RETURN(const Value* loss, FindLoss(graph));
      ASSIGN_OR_RETURN(const std::vector<Target> targets, FindTargets(program, graph, options_));
      const GradientPath path(graph, ValuesOf(targets), loss);
      std::vector<std::string> ruleless;
      size_t inlined = 0;
      for (Node* node : path.nodes()) {
        if (node->def().gradient) continue;
        const std::string name = node->Describe();
        const Status body = HasFunctionBody(*node) ? InlineFunctionBody(graph, node)
                                                   : InvalidModelError("there is no function body to take it apart");
        if (!body.ok()) {
          ruleless.push_back(name + ": no gradient rule, and " + body.message());
          continue;
        }
        ++inlined;
        if (options_.report != nullptr) options_.report->decomposed.push_back(name);
      }
      if (inlined == 0 && !ruleless.empty()) return InvalidModelError(ListRuleless(ruleless));
      if (inlined == 0) return decomposed;
    }
  }

  BuildBackwardOptions options_;
};

}  // namespace

std::unique_ptr<Pass> BuildBackward(const BuildBackwardOptions& options) {
  return std::make_unique<BuildBackwardPass>(options);
}

}  // namespace onnxtrain
