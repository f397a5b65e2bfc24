// SPDX-License-Identifier: Apache-2.0
// Index arithmetic of graph/evaluate: broadcasting, and copies that walk a tensor with given strides (in elements).
#ifndef ONNXTRAIN_GRAPH_EVALUATE_STRIDED_H_
#define ONNXTRAIN_GRAPH_EVALUATE_STRIDED_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/tensor.h"

namespace onnxtrain::evaluation {

using Strides = std::vector<int64_t>;

// Row-major strides.
Strides StridesOf(const Shape& shape);
// Multi-directional broadcasting of ONNX; nullopt when the shapes do not fit.
std::optional<Shape> Broadcast(const Shape& a, const Shape& b);
// Strides with which a tensor of shape `from` is read as one of shape `to`, to which it broadcasts.
Strides BroadcastStrides(const Shape& from, const Shape& to);

// Visits the positions of `shape` in row-major order and follows the element offset of N tensors.
template <size_t N>
class Walk {
 public:
  Walk(const Shape& shape, std::array<Strides, N> strides)
      : shape_(shape), strides_(std::move(strides)), position_(shape.size(), 0) {}

  int64_t offset(size_t tensor) const { return offsets_[tensor]; }
  void set_start(size_t tensor, int64_t offset) { offsets_[tensor] = offset; }
  const Shape& position() const { return position_; }
  void Next() {
    for (size_t axis = shape_.size(); axis-- > 0;) {
      for (size_t t = 0; t < N; ++t) offsets_[t] += strides_[t][axis];
      if (++position_[axis] < shape_[axis]) return;
      for (size_t t = 0; t < N; ++t) offsets_[t] -= strides_[t][axis] * shape_[axis];
      position_[axis] = 0;
    }
  }

 private:
  Shape shape_;
  std::array<Strides, N> strides_;
  Shape position_;
  std::array<int64_t, N> offsets_{};
};

// Copies element `from_index` of `from` to element `to_index` of `to`; the types have one size.
inline void CopyElement(const Tensor& from, int64_t from_index, Tensor& to, int64_t to_index) {
  const size_t size = SizeOf(to.dtype());
  std::memcpy(to.data() + static_cast<size_t>(to_index) * size, from.data() + static_cast<size_t>(from_index) * size,
              size);
}
// to[p] = from[start + sum of p * strides] for every position p of `to`.
void CopyStrided(const Tensor& from, int64_t start, const Strides& strides, Tensor& to);

}  // namespace onnxtrain::evaluation

#endif  // ONNXTRAIN_GRAPH_EVALUATE_STRIDED_H_
