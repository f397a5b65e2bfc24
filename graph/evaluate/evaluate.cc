// SPDX-License-Identifier: Apache-2.0
#include "graph/evaluate.h"

#include <algorithm>
#include <map>

#include "graph/evaluate/evaluation.h"

namespace onnxtrain {
namespace evaluation {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 30;

const std::map<std::string_view, Row>& Rows() {
  static const std::map<std::string_view, Row> rows = [] {
    std::map<std::string_view, Row> made;
    for (std::span<const Row> family : {ShapeRows(), MovementRows(), GatherRows(), ScatterRows(), UnaryRows(),
                                        ArithmeticRows(), LogicRows(), ReductionRows(), SortRows(), MatMulRows()}) {
      for (const Row& row : family) CHECK_WITH(made.emplace(row.op, row).second, std::string(row.op));
    }
    return made;
  }();
  return rows;
}

template <typename T>
StatusOr<T> Attribute(const Call& call, std::string_view name, T fallback) {
  const AttributeValue* value = call.attributes.Find(name);
  if (value == nullptr) return fallback;
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr) return call.Error("attribute '" + std::string(name) + "' has the wrong kind");
  return *typed;
}

bool IsNarrow(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBfloat16; }

// Runs a row whose arithmetic knows no 16-bit floats on widened inputs.
Result RunWidened(const Row& row, const Call& call) {
  std::vector<Tensor> wide(call.inputs.size());
  std::vector<const Tensor*> inputs(call.inputs.begin(), call.inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || !IsNarrow(inputs[i]->dtype())) continue;
    wide[i] = inputs[i]->CastTo(DType::kFloat);
    inputs[i] = &wide[i];
  }
  Result result = row.run({call.op, call.attributes, inputs, call.outputs});
  const DType narrow = call.Has(0) ? call.input(0).dtype() : DType::kUndefined;
  if (!result.ok() || !IsNarrow(narrow)) return result;
  for (Tensor& output : *result) {
    if (output.dtype() == DType::kFloat) output = output.CastTo(narrow);
  }
  return result;
}

}  // namespace

bool IsBounded(std::span<const int64_t> shape, int64_t limit) {
  int64_t product = 1;
  for (const int64_t dim : shape) {
    if (dim > 0 && product > limit / dim) return false;
    product *= std::max<int64_t>(dim, 1);
  }
  return true;
}

Status Call::Error(std::string_view message) const {
  return InvalidModelError(std::string(op) + ": " + std::string(message));
}

Status Call::UnsupportedType(DType dtype) const {
  return Error("element type " + std::string(NameOf(dtype)) + " is not served on the host");
}

StatusOr<int64_t> Call::Int(std::string_view name, int64_t fallback) const { return Attribute(*this, name, fallback); }

StatusOr<std::vector<int64_t>> Call::Ints(std::string_view name) const {
  return Attribute(*this, name, std::vector<int64_t>());
}

StatusOr<std::string> Call::String(std::string_view name, std::string_view fallback) const {
  return Attribute(*this, name, std::string(fallback));
}

StatusOr<std::vector<int64_t>> Call::IntsInput(size_t index) const {
  const Tensor& tensor = input(index);
  if (!IsInteger(tensor.dtype()) || tensor.type().rank() > 1) {
    return Error("input " + std::to_string(index) + " must hold integers of rank 0 or 1, found " +
                 ToString(tensor.type()));
  }
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.IntAt(i));
  return values;
}

StatusOr<int64_t> Call::IntInput(size_t index) const {
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntsInput(index));
  if (values.size() != 1) return Error("input " + std::to_string(index) + " must have one element");
  return values[0];
}

StatusOr<int64_t> Call::Axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) {
    return Error("axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  }
  return axis < 0 ? axis + rank : axis;
}

StatusOr<std::vector<int64_t>> Call::Axes(const std::vector<int64_t>& axes, int64_t rank) const {
  std::vector<int64_t> result;
  for (const int64_t given : axes) {
    ASSIGN_OR_RETURN(const int64_t axis, Axis(given, rank));
    if (std::find(result.begin(), result.end(), axis) != result.end()) {
      return Error("axis " + std::to_string(axis) + " is listed twice");
    }
    result.push_back(axis);
  }
  return result;
}

StatusOr<Tensor> Call::NewTensor(DType dtype, Shape shape) const {
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  if (size == 0) return UnsupportedType(dtype);
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return Error("result would have shape " + ToString(shape));
    empty = empty || dim == 0;
  }
  if (!IsBounded(shape, empty ? kMaxExtent : kMaxBytes / size)) {
    return ResourceExhaustedError(std::string(op) + ": a result of " + ToString(TensorType{dtype, shape}) +
                                  " is too large to be computed ahead of time");
  }
  return Tensor(TensorType{dtype, std::move(shape)});
}

}  // namespace evaluation

bool CanEvaluate(std::string_view op) {
  const auto& rows = evaluation::Rows();
  return rows.find(op) != rows.end();
}

StatusOr<std::vector<Tensor>> Evaluate(std::string_view op, const Attributes& attributes,
                                       std::span<const Tensor* const> inputs, size_t outputs) {
  const evaluation::Call call{op, attributes, inputs, outputs};
  const auto found = evaluation::Rows().find(op);
  if (found == evaluation::Rows().end()) return call.Error("the operator cannot be evaluated on the host");
  const evaluation::Row& row = found->second;
  for (size_t i = 0; i < row.required; ++i) {
    if (!call.Has(i)) return call.Error("input " + std::to_string(i) + " is missing");
  }
  StatusOr<std::vector<Tensor>> result = row.widen ? evaluation::RunWidened(row, call) : row.run(call);
  if (!result.ok()) return result;
  if (result->size() < outputs) {
    return call.Error("has " + std::to_string(result->size()) + " outputs, not " + std::to_string(outputs));
  }
  result->resize(outputs);
  return result;
}

}  // namespace onnxtrain
