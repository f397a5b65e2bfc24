// SPDX-License-Identifier: Apache-2.0
// Lifting: a node as some opset wrote it becomes the canonical form (graph/op_registry.h).
//
// A rule either edits the node under way (attribute to constant input, renamed operator) or emits other nodes and
// names the values that take the place of the outputs.
#ifndef ONNXTRAIN_GRAPH_LIFT_H_
#define ONNXTRAIN_GRAPH_LIFT_H_

#include <string>
#include <vector>

#include "graph/graph_builder.h"

namespace onnxtrain {

// A node as read: inputs resolved to values of the graph under construction.
struct ImportedNode {
  std::string op;  // with "onnxtrain." or another domain as prefix unless it is the default domain
  int opset = 0;   // version of the op's domain that the model imports
  Attributes attributes;
  std::vector<Value*> inputs;
  std::vector<std::string> output_names;  // "" where omitted
  std::string origin;
};

class LiftContext {
 public:
  LiftContext(ImportedNode& node, GraphBuilder& builder) : node(node), build(builder) {}

  ImportedNode& node;
  GraphBuilder& build;

  int opset() const { return node.opset; }
  // The bytes of a constant input; null when omitted or not constant.
  const Tensor* ConstantInput(size_t index) const {
    return index < node.inputs.size() && node.inputs[index] != nullptr ? node.inputs[index]->constant() : nullptr;
  }
  bool HasInput(size_t index) const { return index < node.inputs.size() && node.inputs[index] != nullptr; }
  // Moves an ints attribute to a constant int64 input at `index`, unless it is absent.
  void AttributeToInput(const char* attribute, size_t index);
  // The node is replaced by nodes that the rule emitted; one value per output, null for an omitted one.
  void ReplaceOutputs(std::vector<Value*> values) {
    replaced = true;
    replacements = std::move(values);
  }

  bool replaced = false;
  std::vector<Value*> replacements;
};

// Lifts a node and appends what it becomes at the end of the graph. What follows from constants and known shapes is
// evaluated on the host (graph/evaluate.h) and becomes a constant, up to max_constant_elements. One value per output name,
// null for an omitted one; a value may have been there before, where the operator does nothing. Names are made unique.
StatusOr<std::vector<Value*>> AppendLifted(Graph& graph, ImportedNode node, int64_t max_constant_elements);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_LIFT_H_
