// SPDX-License-Identifier: Apache-2.0
// What the files of graph/evaluate share: the call under way, the table of operators, dispatch on element types.
#ifndef ONNXTRAIN_GRAPH_EVALUATE_EVALUATION_H_
#define ONNXTRAIN_GRAPH_EVALUATE_EVALUATION_H_

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "graph/attributes.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace onnxtrain::evaluation {

struct Call {
  std::string_view op;
  const Attributes& attributes;
  std::span<const Tensor* const> inputs;
  size_t outputs = 1;

  bool Has(size_t index) const { return index < inputs.size() && inputs[index] != nullptr; }
  // Required inputs were checked to be there (Row::required).
  const Tensor& input(size_t index) const { return *inputs[index]; }
  // "Gather: message" as InvalidModel.
  Status Error(std::string_view message) const;
  Status UnsupportedType(DType dtype) const;

  // An attribute of the wrong kind is an error of the file, not of ours.
  StatusOr<int64_t> Int(std::string_view name, int64_t fallback) const;
  StatusOr<std::vector<int64_t>> Ints(std::string_view name) const;
  StatusOr<std::string> String(std::string_view name, std::string_view fallback) const;

  // All elements of an integer input of rank 0 or 1.
  StatusOr<std::vector<int64_t>> IntsInput(size_t index) const;
  // The only element of an integer input.
  StatusOr<int64_t> IntInput(size_t index) const;
  // `axis` counted from the front; an error unless -rank <= axis < rank.
  StatusOr<int64_t> Axis(int64_t axis, int64_t rank) const;
  // Distinct axes counted from the front.
  StatusOr<std::vector<int64_t>> Axes(const std::vector<int64_t>& axes, int64_t rank) const;
  // Zero-filled; an error for negative dimensions or above the size limit.
  StatusOr<Tensor> NewTensor(DType dtype, Shape shape) const;
};

// Whether the product of the dimensions that are not 0 is at most `limit`: index arithmetic on such a shape cannot
// overflow.
inline constexpr int64_t kMaxExtent = int64_t{1} << 56;
bool IsBounded(std::span<const int64_t> shape, int64_t limit = kMaxExtent);

using Result = StatusOr<std::vector<Tensor>>;

struct Row {
  std::string_view op;
  Result (*run)(const Call&);
  size_t required = 1;  // the first inputs that must be there
  // 16-bit floats are widened to float, and results narrowed to the first input's type.
  bool widen = false;
};

std::span<const Row> ShapeRows();
std::span<const Row> MovementRows();
std::span<const Row> GatherRows();
std::span<const Row> ScatterRows();
std::span<const Row> UnaryRows();
std::span<const Row> ArithmeticRows();
std::span<const Row> LogicRows();
std::span<const Row> ReductionRows();
std::span<const Row> SortRows();
std::span<const Row> MatMulRows();

inline Result One(Tensor tensor) {
  std::vector<Tensor> list;
  list.push_back(std::move(tensor));
  return list;
}
inline Result One(StatusOr<Tensor> tensor) {
  if (!tensor.ok()) return tensor.status();
  return One(std::move(tensor).value());
}

// Calls visit(T{}) for the C++ type of `dtype`; `otherwise()` for types that are not listed.
template <typename Visitor, typename Otherwise>
auto VisitNumber(DType dtype, Visitor visit, Otherwise otherwise) {
  switch (dtype) {
    case DType::kFloat:
      return visit(float{});
    case DType::kDouble:
      return visit(double{});
    case DType::kInt64:
      return visit(int64_t{});
    case DType::kInt32:
      return visit(int32_t{});
    case DType::kInt16:
      return visit(int16_t{});
    case DType::kInt8:
      return visit(int8_t{});
    case DType::kUint64:
      return visit(uint64_t{});
    case DType::kUint32:
      return visit(uint32_t{});
    case DType::kUint16:
      return visit(uint16_t{});
    case DType::kUint8:
      return visit(uint8_t{});
    default:
      return otherwise();
  }
}

template <typename Visitor, typename Otherwise>
auto VisitFloat(DType dtype, Visitor visit, Otherwise otherwise) {
  switch (dtype) {
    case DType::kFloat:
      return visit(float{});
    case DType::kDouble:
      return visit(double{});
    default:
      return otherwise();
  }
}

// Arithmetic that wraps for integers of every width, without the promotion to int that makes overflow undefined.
template <typename T>
T WrapAdd(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a + b;
  } else {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
}
template <typename T>
T WrapSub(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a - b;
  } else {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
}
template <typename T>
T WrapMul(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a * b;
  } else {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
}
// numpy's maximum and minimum: NaN wins.
template <typename T>
T Larger(T a, T b) {
  return a > b || a != a ? a : b;
}
template <typename T>
T Smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

}  // namespace onnxtrain::evaluation

#endif  // ONNXTRAIN_GRAPH_EVALUATE_EVALUATION_H_
