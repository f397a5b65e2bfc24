// SPDX-License-Identifier: Apache-2.0
// A training step as data: nodes in topological order over values that are written once.
//
// Passes edit a Graph in place; the runtime only reads it. Not thread-safe. Every type is concrete: symbolic
// dimensions were bound and shape arithmetic was folded away when the graph was read (graph/onnx_reader.h).
#ifndef ONNXTRAIN_GRAPH_GRAPH_H_
#define ONNXTRAIN_GRAPH_GRAPH_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/attributes.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace onnxtrain {

class Graph;
class Node;
class OpRegistry;
struct OpDef;

enum class ValueKind : uint8_t {
  kIntermediate,  // written by a node of this graph
  kInput,         // fed for every run
  kConstant,      // known bytes, the same in every run and on every rank
  kState,         // carried from run to run; described by the Program's state table under the same name
};

class Value {
 public:
  const std::string& name() const { return name_; }
  const TensorType& type() const { return type_; }
  ValueKind kind() const { return kind_; }
  // The node that writes it; null unless kIntermediate.
  Node* producer() const { return producer_; }
  // One entry per use by a node (a node that reads it twice is listed twice). Graph outputs, updates and roles are
  // not consumers.
  const std::vector<Node*>& consumers() const { return consumers_; }
  // The bytes of a constant; null for every other kind.
  const Tensor* constant() const { return constant_.get(); }
  // For a state: the value it becomes when the run ends; null when the graph leaves it unchanged.
  Value* update() const { return update_; }

 private:
  friend class Graph;
  std::string name_;
  TensorType type_;
  ValueKind kind_ = ValueKind::kIntermediate;
  Node* producer_ = nullptr;
  std::vector<Node*> consumers_;
  std::unique_ptr<Tensor> constant_;
  Value* update_ = nullptr;
};

class Node {
 public:
  // "MatMul", or with our domain "onnxtrain.AllReduce".
  const std::string& op() const;
  const OpDef& def() const { return *def_; }
  const Attributes& attributes() const { return attributes_; }
  const std::vector<Value*>& inputs() const { return inputs_; }    // null: an omitted optional input
  const std::vector<Value*>& outputs() const { return outputs_; }  // null: an omitted optional output
  // Null when the position is absent or omitted.
  Value* input(size_t index) const { return index < inputs_.size() ? inputs_[index] : nullptr; }
  Value* output(size_t index) const { return index < outputs_.size() ? outputs_[index] : nullptr; }
  // Where the node came from, for messages: "/h.0/attn/MatMul (MatMul, opset 17)", or the pass that made it.
  const std::string& origin() const { return origin_; }
  void set_origin(std::string origin) { origin_ = std::move(origin); }
  // "Gemm node '/fc/Gemm'": how messages name it.
  std::string Describe() const;

 private:
  friend class Graph;
  const OpDef* def_ = nullptr;
  Attributes attributes_;
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  std::string origin_;
  std::list<std::unique_ptr<Node>>::iterator position_;
};

// What Graph::Insert needs to know of a new node.
struct NodeSpec {
  std::string op;
  std::vector<Value*> inputs;
  Attributes attributes;
  // Wanted names, one per output; made unique by a numeric suffix. "" in the middle omits an optional output.
  std::vector<std::string> output_names;
  std::string origin;
  // Types of the outputs where the caller knows them; empty: inferred by the operator's definition.
  std::vector<TensorType> output_types;
};

class Graph {
 public:
  // The registry is borrowed and must outlive the graph.
  explicit Graph(const OpRegistry& registry, std::string name = "step");
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();
  // Deep copy with the same names and order.
  Graph Clone(std::string name) const;

  const std::string& name() const { return name_; }
  const OpRegistry& registry() const { return *registry_; }

  // Names must be new; CHECKs it.
  Value* AddInput(std::string name, TensorType type);
  Value* AddState(std::string name, TensorType type);
  // The name is made unique.
  Value* AddConstant(std::string_view name, Tensor tensor);

  // Inserts a node before `before` (null: at the end), infers the types of its outputs, makes their names unique.
  // Fails, leaving the graph as it was, when the operator is unknown or its inputs do not fit it.
  StatusOr<Node*> Insert(Node* before, NodeSpec spec);
  // Takes a node out. CHECKs that no output of it is used, is a graph output or an update; roles of its outputs go.
  void Erase(Node* node);
  // Takes an input, constant or state out that nothing uses. CHECKs it.
  void EraseValue(Value* value);
  // Every use of `from` (nodes, updates, graph outputs) reads `to` instead; roles stay. Fails on different types.
  // A graph output keeps its name: `to` takes the name of `from`, and `from` a new one.
  Status ReplaceUses(Value* from, Value* to);
  // One input of one node.
  void SetInput(Node* node, size_t index, Value* value);
  void SetAttribute(Node* node, std::string name, AttributeValue value);
  void MoveBefore(Node* node, Node* before);
  // What the state becomes after the run; null for unchanged. CHECKs the kind and equal types.
  void SetUpdate(Value* state, Value* update);
  void AddOutput(Value* value);
  void RemoveOutput(Value* value);
  void Rename(Value* value, std::string name);

  // A role names a value for later passes: "loss_sum", "loss_weight", "gradient/<parameter>". It keeps nothing
  // alive. Printed as metadata; the list of roles is in passes/README.md.
  void SetRole(std::string role, Value* value);
  Value* FindRole(std::string_view role) const;
  void EraseRole(std::string_view role);
  const std::map<std::string, Value*, std::less<>>& roles() const { return roles_; }

  // In topological order. Take NodesInOrder() to edit while walking.
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  std::vector<Node*> NodesInOrder() const;
  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& states() const { return states_; }
  const std::vector<Value*>& constants() const { return constants_; }
  // What may be fetched, in order.
  const std::vector<Value*>& outputs() const { return outputs_; }
  Value* FindValue(std::string_view name) const;
  // `wanted`, or `wanted_1`, `wanted_2`, ... that no value has yet.
  std::string UniqueName(std::string_view wanted) const;

 private:
  Value* NewValue(std::string name, TensorType type, ValueKind kind);
  void Unlink(Value* value, Node* consumer);

  const OpRegistry* registry_;
  std::string name_;
  std::list<std::unique_ptr<Node>> nodes_;
  std::unordered_map<std::string, std::unique_ptr<Value>> values_;
  std::vector<Value*> inputs_;
  std::vector<Value*> states_;
  std::vector<Value*> constants_;
  std::vector<Value*> outputs_;
  std::map<std::string, Value*, std::less<>> roles_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_GRAPH_H_
