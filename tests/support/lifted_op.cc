// SPDX-License-Identifier: Apache-2.0
#include "tests/support/lifted_op.h"

#include <gtest/gtest.h>

#include <string>

#include "graph/lift.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

std::vector<Value*> AddInputs(Graph& graph, const std::vector<OpInput>& inputs) {
  std::vector<Value*> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    if (!inputs[i].tensor.has_value()) {
      values.push_back(nullptr);
    } else if (inputs[i].constant) {
      values.push_back(graph.AddConstant(name, *inputs[i].tensor));
    } else {
      values.push_back(graph.AddInput(name, inputs[i].tensor->type()));
    }
  }
  return values;
}

}  // namespace

Status AddLiftedOp(Graph& graph, std::string_view op, int opset, const std::vector<OpInput>& inputs,
                   Attributes attributes, size_t outputs) {
  const OpDef* def = graph.registry().Find(op);
  if (def == nullptr) return InvalidModelError("no operator " + std::string(op));
  ImportedNode node{std::string(op), opset, std::move(attributes), AddInputs(graph, inputs), {}, "test"};
  for (size_t i = 0; i < outputs; ++i) node.output_names.push_back("y" + std::to_string(i));
  GraphBuilder builder(graph, nullptr, "test");
  LiftContext context(node, builder);
  if (def->lift) RETURN_IF_ERROR(def->lift(context));
  RETURN_IF_ERROR(builder.status());
  std::vector<Value*> results = context.replacements;
  if (!context.replaced) {
    ASSIGN_OR_RETURN(
        Node * inserted,
        graph.Insert(nullptr, {node.op, node.inputs, node.attributes, node.output_names, node.origin, {}}));
    results = inserted->outputs();
  }
  for (Value* result : results) {
    if (result != nullptr) graph.AddOutput(result);
  }
  return OkStatus();
}

std::vector<Tensor> RunLiftedOp(std::string_view op, int opset, const std::vector<OpInput>& inputs,
                                Attributes attributes, size_t outputs) {
  Graph graph(OpRegistry::Default());
  const Status added = AddLiftedOp(graph, op, opset, inputs, std::move(attributes), outputs);
  std::vector<Tensor> results(outputs);
  if (!added.ok()) {
    ADD_FAILURE() << added.message();
    return results;
  }
  NamedTensors fetched = RunEveryWay(graph, FeedsOf(inputs));
  for (size_t i = 0; i < graph.outputs().size() && !fetched.empty(); ++i) {
    results[i] = fetched.at(graph.outputs()[i]->name());
  }
  return results;
}

}  // namespace onnxtrain
