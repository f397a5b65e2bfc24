// SPDX-License-Identifier: Apache-2.0
#include "graph/lift.h"

#include <algorithm>

#include "graph/evaluate.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

bool AllConstant(const std::vector<Value*>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const Value* input) { return input == nullptr || input->constant() != nullptr; });
}

std::vector<const Tensor*> Constants(const std::vector<Value*>& inputs) {
  std::vector<const Tensor*> tensors;
  for (const Value* input : inputs) tensors.push_back(input == nullptr ? nullptr : input->constant());
  return tensors;
}

// Shape and Size need the type of their input only.
std::vector<Tensor> EvaluateShape(const std::string& op, const Attributes& attributes, const TensorType& type) {
  if (op == "Size") return {Tensor::Scalar<int64_t>(type.elements())};
  const auto clamped = [&](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + type.rank() : axis, 0, type.rank());
  };
  const int64_t start = clamped(attributes.Int("start", 0));
  const int64_t end = std::max(start, clamped(attributes.Int("end", type.rank())));
  return {Tensor::Ints({type.shape.begin() + start, type.shape.begin() + end})};
}

bool NeedsTypeOnly(const std::string& op) { return op == "Shape" || op == "Size"; }

// The outputs of a node whose inputs are known; nothing where it must stay a node.
std::vector<Tensor> TryEvaluate(const Node& node, int64_t max_elements) {
  if (node.def().random || node.def().side_effect) return {};
  for (const Value* output : node.outputs()) {
    if (output != nullptr && output->type().elements() > max_elements) return {};
  }
  if (NeedsTypeOnly(node.op()) && node.input(0) != nullptr) {
    return EvaluateShape(node.op(), node.attributes(), node.input(0)->type());
  }
  if (!AllConstant(node.inputs()) || !CanEvaluate(node.op())) return {};
  StatusOr<std::vector<Tensor>> results =
      Evaluate(node.op(), node.attributes(), Constants(node.inputs()), node.outputs().size());
  return results.ok() ? *std::move(results) : std::vector<Tensor>();
}

// Puts constants in the place of the node's outputs, and in `outputs` wherever these are listed.
Status ReplaceByConstants(Graph& graph, Node* node, std::vector<Tensor> results, std::vector<Value*>& outputs) {
  std::vector<std::pair<Value*, std::string>> made;
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    Value* old = node->output(i);
    if (old == nullptr) continue;
    Value* constant = graph.AddConstant(old->name(), std::move(results[i]));
    RETURN_IF_ERROR(graph.ReplaceUses(old, constant).Prepend("evaluating " + node->Describe()));
    std::replace(outputs.begin(), outputs.end(), old, constant);
    made.emplace_back(constant, old->name());
  }
  graph.Erase(node);
  for (auto& [constant, name] : made)
    graph.Rename(constant, graph.FindValue(name) == nullptr ? name : constant->name());
  return OkStatus();
}

std::vector<Node*> NodesAfter(const Graph& graph, const Node* last) {
  std::vector<Node*> nodes;
  for (auto at = graph.nodes().rbegin(); at != graph.nodes().rend() && at->get() != last; ++at)
    nodes.push_back(at->get());
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

// For operators whose types cannot be inferred although their inputs are known (NonZero, Unique, ...).
StatusOr<std::vector<Value*>> EvaluateUntyped(Graph& graph, const ImportedNode& node, const Status& reason) {
  if (!AllConstant(node.inputs) || !CanEvaluate(node.op)) return reason;
  StatusOr<std::vector<Tensor>> results =
      Evaluate(node.op, node.attributes, Constants(node.inputs), node.output_names.size());
  if (!results.ok()) return reason;
  std::vector<Value*> values;
  for (size_t i = 0; i < node.output_names.size(); ++i) {
    const std::string& name = node.output_names[i];
    values.push_back(name.empty() ? nullptr : graph.AddConstant(name, std::move((*results)[i])));
  }
  return values;
}

StatusOr<std::vector<Value*>> Append(Graph& graph, const ImportedNode& node) {
  StatusOr<Node*> inserted =
      graph.Insert(nullptr, {node.op, node.inputs, node.attributes, node.output_names, node.origin, {}});
  if (!inserted.ok()) return EvaluateUntyped(graph, node, inserted.status());
  return (*inserted)->outputs();
}

}  // namespace

StatusOr<std::vector<Value*>> AppendLifted(Graph& graph, ImportedNode node, int64_t max_constant_elements) {
  const Node* last = graph.nodes().empty() ? nullptr : graph.nodes().back().get();
  GraphBuilder builder(graph, nullptr, node.origin);
  LiftContext context(node, builder);
  const OpDef* def = graph.registry().Find(node.op);
  if (def != nullptr && def->lift) {
    RETURN_IF_ERROR(def->lift(context).Prepend(node.origin));
    RETURN_IF_ERROR(builder.status());
  }
  std::vector<Value*> outputs = std::move(context.replacements);
  if (!context.replaced) {
    ASSIGN_OR_RETURN(outputs, Append(graph, node));
  }
  for (Node* made : NodesAfter(graph, last)) {
    std::vector<Tensor> results = TryEvaluate(*made, max_constant_elements);
    if (!results.empty()) RETURN_IF_ERROR(ReplaceByConstants(graph, made, std::move(results), outputs));
  }
  CHECK_WITH(outputs.size() >= node.output_names.size(), "outputs of " + node.origin);
  for (size_t i = 0; i < node.output_names.size(); ++i) {
    if (node.output_names[i].empty()) outputs[i] = nullptr;
  }
  outputs.resize(node.output_names.size());
  return outputs;
}

}  // namespace onnxtrain
