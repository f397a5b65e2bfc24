// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_builder.h"

#include <numeric>

#include "graph/lift.h"
#include "graph/op_registry.h"

namespace onnxtrain {

GraphBuilder::GraphBuilder(Graph& graph, Node* before, std::string origin)
    : graph_(graph), before_(before), origin_(std::move(origin)) {}

void GraphBuilder::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Value* GraphBuilder::Op(std::string_view op, std::vector<Value*> inputs, Attributes attributes,
                        std::string_view name) {
  return Ops(op, std::move(inputs), std::move(attributes), 1, name)[0];
}

std::vector<Value*> GraphBuilder::Ops(std::string_view op, std::vector<Value*> inputs, Attributes attributes,
                                      size_t outputs, std::string_view name) {
  if (!ok()) return std::vector<Value*>(outputs, nullptr);
  std::string base(name.empty() ? (IsOwnOp(op) ? op.substr(kOwnPrefix.size()) : op) : name);
  NodeSpec spec{std::string(op), std::move(inputs), std::move(attributes), {}, origin_, {}};
  for (size_t i = 0; i < outputs; ++i) spec.output_names.push_back(i == 0 ? base : base + "_" + std::to_string(i));
  StatusOr<Node*> node = graph_.Insert(before_, std::move(spec));
  if (!node.ok()) {
    Fail(node.status());
    return std::vector<Value*>(outputs, nullptr);
  }
  return (*node)->outputs();
}

Value* GraphBuilder::Constant(Tensor tensor, std::string_view name) {
  return graph_.AddConstant(name, std::move(tensor));
}

Value* GraphBuilder::Ints(const std::vector<int64_t>& values) { return Constant(Tensor::Ints(values)); }

Value* GraphBuilder::Scalar(double value, DType dtype) { return Constant(Tensor::Scalar(value).CastTo(dtype)); }

Value* GraphBuilder::Zeros(const TensorType& type, std::string_view name) {
  Tensor zero = Tensor(TensorType{type.dtype, {1}});
  return Op("ConstantOfShape", {Ints(type.shape)}, {{"value", std::move(zero)}}, name);
}

Value* GraphBuilder::Cast(Value* a, DType dtype) {
  if (!ok() || a->type().dtype == dtype) return a;
  return Op("Cast", {a}, {{"to", static_cast<int64_t>(dtype)}});
}

Value* GraphBuilder::Reshape(Value* a, const Shape& shape) {
  if (!ok() || a->type().shape == shape) return a;
  return Op("Reshape", {a, Ints(shape)}, {{"allowzero", int64_t{1}}});
}

Value* GraphBuilder::Transpose(Value* a, const std::vector<int64_t>& permutation) {
  std::vector<int64_t> identity(permutation.size());
  std::iota(identity.begin(), identity.end(), 0);
  if (!ok() || permutation == identity) return a;
  return Op("Transpose", {a}, {{"perm", permutation}});
}

Value* GraphBuilder::ReduceSum(Value* a, const std::vector<int64_t>& axes, bool keepdims) {
  if (!ok() || axes.empty()) return a;
  return Op("ReduceSum", {a, Ints(axes)}, {{"keepdims", int64_t{keepdims}}});
}

Value* GraphBuilder::SumTo(Value* a, const Shape& shape) {
  if (!ok() || a->type().shape == shape) return a;
  const Shape& from = a->type().shape;
  const size_t added = from.size() - shape.size();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < from.size(); ++i) {
    if (i < added || (shape[i - added] == 1 && from[i] != 1)) axes.push_back(static_cast<int64_t>(i));
  }
  return Reshape(ReduceSum(a, axes, /*keepdims=*/false), shape);
}

void LiftContext::AttributeToInput(const char* attribute, size_t index) {
  if (!node.attributes.Has(attribute)) return;
  if (node.inputs.size() <= index) node.inputs.resize(index + 1, nullptr);
  node.inputs[index] = build.Ints(node.attributes.Ints(attribute));
  node.attributes.Erase(attribute);
}

}  // namespace onnxtrain
