// SPDX-License-Identifier: Apache-2.0
#include "passes/fold_constants.h"

#include <algorithm>

#include "graph/evaluate.h"
#include "graph/op_registry.h"
#include "passes/replace_value.h"

namespace onnxtrain {
namespace {

bool MayFold(const Graph& graph, const Node& node, const FoldConstantsOptions& options) {
  const OpDef& def = node.def();
  if (def.random || def.collective || def.side_effect || !CanEvaluate(node.op())) return false;
  size_t input_bytes = 0;
  for (const Value* input : node.inputs()) {
    if (input != nullptr) input_bytes += input->type().bytes();
  }
  size_t output_bytes = 0;
  for (const Value* output : node.outputs()) {
    if (output == nullptr) continue;
    if (IsGraphOutput(graph, output) || IsUpdate(graph, output)) return false;
    output_bytes += output->type().bytes();
  }
  return output_bytes <= std::max(static_cast<size_t>(options.max_bytes), input_bytes);
}

// One tensor per output; empty when the node does not fold.
std::vector<Tensor> ValuesOf(const Node& node) {
  std::vector<Tensor> values;
  if (node.inputs().size() == 1 && node.input(0) != nullptr) {
    std::optional<Tensor> value = EvaluateFromType(node.op(), node.attributes(), node.input(0)->type());
    if (value) {
      values.push_back(*std::move(value));
      return values;
    }
  }
  std::vector<const Tensor*> inputs;
  for (const Value* input : node.inputs()) {
    if (input != nullptr && input->constant() == nullptr) return {};
    inputs.push_back(input == nullptr ? nullptr : input->constant());
  }
  StatusOr<std::vector<Tensor>> result = Evaluate(node.op(), node.attributes(), inputs, node.outputs().size());
  return result.ok() ? *std::move(result) : std::vector<Tensor>();
}

Status ReplaceByConstants(Graph& graph, Node* node, std::vector<Tensor> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Value* output = node->output(i);
    if (output == nullptr) continue;
    const std::string name = output->name();
    graph.Rename(output, graph.UniqueName(name + "_folded"));
    RETURN_IF_ERROR(ReplaceValue(graph, output, graph.AddConstant(name, std::move(values[i]))));
  }
  graph.Erase(node);
  return OkStatus();
}

class FoldConstantsPass : public Pass {
 public:
  explicit FoldConstantsPass(const FoldConstantsOptions& options) : options_(options) {}
  std::string_view name() const override { return "fold_constants"; }

  StatusOr<bool> Run(Program& program) const override {
    bool changed = false;
    for (const auto& [name, unused] : program.graphs()) {
      ASSIGN_OR_RETURN(const bool folded, Fold(*program.FindGraph(name)));
      changed = changed || folded;
    }
    return changed;
  }

 private:
  StatusOr<bool> Fold(Graph& graph) const {
    bool changed = false;
    for (Node* node : graph.NodesInOrder()) {
      if (!MayFold(graph, *node, options_)) continue;
      std::vector<Tensor> values = ValuesOf(*node);
      if (values.empty()) continue;
      const std::vector<Value*> inputs = node->inputs();
      RETURN_IF_ERROR(ReplaceByConstants(graph, node, std::move(values)));
      EraseUnusedConstants(graph, inputs);
      changed = true;
    }
    return changed;
  }

  FoldConstantsOptions options_;
};

}  // namespace

std::unique_ptr<Pass> FoldConstants(const FoldConstantsOptions& options) {
  return std::make_unique<FoldConstantsPass>(options);
}

}  // namespace onnxtrain
