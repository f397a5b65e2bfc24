// SPDX-License-Identifier: Apache-2.0
// Writes nodes into a graph as expressions, for gradient rules, lifting and passes:
//   Value* scaled = build.Op("Mul", {x, build.Scalar(0.5, x->type().dtype)});
// The first failure is kept and everything after it is a no-op that returns null, so rules read like mathematics and
// check once: return build.status().
#ifndef ONNXTRAIN_GRAPH_GRAPH_BUILDER_H_
#define ONNXTRAIN_GRAPH_GRAPH_BUILDER_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace onnxtrain {

class GraphBuilder {
 public:
  // New nodes go before `before` (null: at the end of the graph). `origin` is written on each of them.
  GraphBuilder(Graph& graph, Node* before, std::string origin);

  // One output, named after `name` (or the operator).
  Value* Op(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {}, std::string_view name = "");
  // `outputs` outputs. On failure a vector of nulls.
  std::vector<Value*> Ops(std::string_view op, std::vector<Value*> inputs, Attributes attributes, size_t outputs,
                          std::string_view name = "");
  Value* Constant(Tensor tensor, std::string_view name = "constant");
  Value* Ints(const std::vector<int64_t>& values);                // int64 [n]
  Value* Scalar(double value, DType dtype);                       // rank 0
  Value* Zeros(const TensorType& type, std::string_view name = "zeros");  // ConstantOfShape, written at run time

  // Shorthands; each is one or a few standard nodes, or the value itself where nothing is to be done.
  Value* Add(Value* a, Value* b) { return Op("Add", {a, b}); }
  Value* Sub(Value* a, Value* b) { return Op("Sub", {a, b}); }
  Value* Mul(Value* a, Value* b) { return Op("Mul", {a, b}); }
  Value* Div(Value* a, Value* b) { return Op("Div", {a, b}); }
  Value* Neg(Value* a) { return Op("Neg", {a}); }
  Value* Cast(Value* a, DType dtype);
  Value* Reshape(Value* a, const Shape& shape);
  Value* Transpose(Value* a, const std::vector<int64_t>& permutation);
  Value* ReduceSum(Value* a, const std::vector<int64_t>& axes, bool keepdims);
  // Sums a broadcast gradient back to `shape`: axes that were added or stretched.
  Value* SumTo(Value* a, const Shape& shape);

  Graph& graph() { return graph_; }
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  void Fail(Status status);

 private:
  Graph& graph_;
  Node* before_;
  std::string origin_;
  Status status_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_GRAPH_BUILDER_H_
