// SPDX-License-Identifier: Apache-2.0
// Reading the parts of a training step (passes/README.md) out of a graph, for the passes that rewrite them.
#ifndef ONNXTRAIN_PASSES_STEP_STRUCTURE_H_
#define ONNXTRAIN_PASSES_STEP_STRUCTURE_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph_builder.h"
#include "graph/program.h"

namespace onnxtrain {

// An optimizer: w, g, moments..., rate, grad_scale, step, apply -> w, moments...
struct OptimizerKind {
  std::string_view op;
  // Roles of the moments, in the order of inputs 2.. and outputs 1..; SGD may omit its momentum.
  std::vector<std::string_view> moments;
};
// Null when `op` is not an optimizer.
const OptimizerKind* FindOptimizer(std::string_view op);

inline constexpr size_t kOptimizerWeight = 0;
inline constexpr size_t kOptimizerGradient = 1;
inline constexpr size_t kOptimizerMoments = 2;

// In graph order.
std::vector<Node*> OptimizerNodes(const Graph& graph);
// The first node of the operator; null when there is none.
Node* FindNode(const Graph& graph, std::string_view op);

// Places of nodes, as they were when this was made. Nodes inserted later have no place.
class NodeOrder {
 public:
  explicit NodeOrder(const Graph& graph);
  // Place of the node; the number of nodes for null, -1 for the producer of a value that no node writes.
  int PlaceOf(const Node* node) const;
  int ReleaseOf(const Value* value) const { return value->producer() == nullptr ? -1 : PlaceOf(value->producer()); }
  // The node that stood right behind the producer of `value`: inserting before it puts a node as early as it can be.
  // Null (the end) behind the last node.
  Node* Behind(int place) const;
  // Place of the first node that reads the value; the number of nodes when none does.
  int FirstUse(const Value* value) const;

 private:
  std::vector<Node*> nodes_;
  std::unordered_map<const Node*, int> places_;
};

// The graph's value of a counter ("step", "attempt"), found by its canonical name "counter/<counter>"; the state is
// added to program and graph where it is missing. The value's name is made unique among the values of every graph.
Value* CounterState(Program& program, Graph& graph, std::string_view counter);

// The graph's value of a state of the table, added to the graph when it has none of the name yet.
Value* StateValue(Graph& graph, const StateEntry& entry);

// A state name that no value of any graph and no state has: `wanted`, or `wanted_1`, ...
std::string UniqueStateName(const Program& program, std::string_view wanted);

// Makes `name` free for an output of the graph: a node output that has it gets another name. Fails with InvalidModel
// when it belongs to an input, state or constant.
Status FreeName(Graph& graph, std::string_view name);

// A gradient on its way to a bucket of `dtype`, cast where it must be. One that was computed in `dtype` and cast is taken
// from before its Cast, and the role gradient/<parameter> with it, where it names the same value; the Cast may be left
// without a reader.
Value* GradientIn(GraphBuilder& build, std::string_view parameter, Value* gradient, DType dtype);

// Takes out every node that neither an output nor an update of a state needs (collectives and operators with side
// effects stay), then constants and states that nothing reads. Inputs stay. Roles of what is gone go with it.
void EraseDeadNodes(Graph& graph);

// Graph names of a program whose runs update parameters: "step", or "first", "middle", "last"; those that exist.
std::vector<Graph*> TrainingGraphs(Program& program);
// The one of them that holds the optimizer: "step" or "last". Null when there is none.
Graph* UpdatingGraph(Program& program);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_STEP_STRUCTURE_H_
