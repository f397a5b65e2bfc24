// SPDX-License-Identifier: Apache-2.0
// Tensors in host memory: initial values of state, constants, feeds, fetches, file contents.
// Row-major, dense, little endian. A tensor of rank 0 has one element; a dimension may be 0.
#ifndef ONNXTRAIN_GRAPH_TENSOR_H_
#define ONNXTRAIN_GRAPH_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/dtype.h"
#include "graph/status.h"

namespace onnxtrain {

using Shape = std::vector<int64_t>;

// Element type and shape, both fully known.
struct TensorType {
  DType dtype = DType::kUndefined;
  Shape shape;

  bool known() const { return dtype != DType::kUndefined; }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t elements() const;  // 1 for rank 0
  size_t bytes() const { return static_cast<size_t>(elements()) * SizeOf(dtype); }
  bool operator==(const TensorType&) const = default;
};

int64_t ElementsOf(std::span<const int64_t> shape);
// "float[2,3]", "int64[]" for a scalar, "?" when unknown. Messages and the text form use it.
std::string ToString(const TensorType& type);
// "[2,3]"
std::string ToString(const Shape& shape);

// Owns its bytes, aligned to 64. Copies are deep; moves are cheap. Not thread-safe for writers.
class Tensor {
 public:
  Tensor() = default;
  // Zero-filled. CHECKs that no dimension is negative.
  explicit Tensor(TensorType type);
  Tensor(const Tensor& other);
  Tensor& operator=(const Tensor& other);
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;

  // From values in row-major order; their count must be that of the shape.
  template <typename T>
  static Tensor From(Shape shape, std::span<const T> values);
  template <typename T>
  static Tensor FromVector(Shape shape, const std::vector<T>& values) {
    return From<T>(std::move(shape), std::span<const T>(values));
  }
  template <typename T>
  static Tensor Scalar(T value) { return From<T>({}, std::span<const T>(&value, 1)); }
  static Tensor Ints(const std::vector<int64_t>& values);  // int64 [n]

  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  int64_t elements() const { return type_.elements(); }
  size_t bytes() const { return type_.bytes(); }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }

  // Typed view; CHECKs that T is the element type (bool and the 16-bit formats through their storage type).
  template <typename T>
  std::span<T> values();
  template <typename T>
  std::span<const T> values() const;

  // The same bytes under another shape of equally many elements.
  Tensor Reshaped(Shape shape) const;
  // Element `index` converted to double or int64, whatever the element type (not string).
  double DoubleAt(int64_t index) const;
  int64_t IntAt(int64_t index) const;
  // Element-wise conversion as ONNX Cast does it (float to int truncates, any to bool is != 0).
  Tensor CastTo(DType dtype) const;
  // Same type and same bytes.
  bool Identical(const Tensor& other) const;

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  void CheckElementType(DType wanted) const;

  TensorType type_;
  std::unique_ptr<std::byte[], Free> data_;
};

template <typename T>
std::span<T> Tensor::values() {
  CheckElementType(DTypeOf<T>());
  return {reinterpret_cast<T*>(data_.get()), static_cast<size_t>(elements())};
}

template <typename T>
std::span<const T> Tensor::values() const {
  CheckElementType(DTypeOf<T>());
  return {reinterpret_cast<const T*>(data_.get()), static_cast<size_t>(elements())};
}

template <typename T>
Tensor Tensor::From(Shape shape, std::span<const T> values) {
  Tensor tensor(TensorType{DTypeOf<T>(), std::move(shape)});
  CHECK(tensor.elements() == static_cast<int64_t>(values.size()));
  if (!values.empty()) std::memcpy(tensor.data(), values.data(), values.size() * sizeof(T));
  return tensor;
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_TENSOR_H_
