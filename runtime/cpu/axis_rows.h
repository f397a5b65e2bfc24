// SPDX-License-Identifier: Apache-2.0
// A tensor seen as rows along one of its axes, for operators that work on whole rows (softmax, losses).
// Where the axis is not the last, a row's elements lie `inner` apart; such rows are copied in blocks of kAxisRowBlock,
// so that memory is read in runs.
#ifndef ONNXTRAIN_RUNTIME_CPU_AXIS_ROWS_H_
#define ONNXTRAIN_RUNTIME_CPU_AXIS_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "graph/tensor.h"

namespace onnxtrain {

inline constexpr int64_t kAxisRowBlock = 16;

struct AxisRows {
  int64_t outer = 1;
  int64_t length = 1;  // of a row
  int64_t inner = 1;

  AxisRows(const Shape& shape, int64_t axis) {
    const std::span<const int64_t> sizes(shape);
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
    outer = ElementsOf(sizes.first(axis));
    length = sizes[axis];
    inner = ElementsOf(sizes.subspan(axis + 1));
  }

  int64_t rows() const { return outer * inner; }
  bool contiguous() const { return inner == 1; }
  // Blocks of up to kAxisRowBlock rows; row r has the outer index r / inner and the inner index r % inner. No block
  // spans two outer indices unless rows are contiguous.
  int64_t blocks_per_outer() const { return (inner + kAxisRowBlock - 1) / kAxisRowBlock; }
  int64_t blocks() const {
    return contiguous() ? (outer + kAxisRowBlock - 1) / kAxisRowBlock : outer * blocks_per_outer();
  }
  int64_t first_row(int64_t block) const {
    return contiguous() ? block * kAxisRowBlock
                        : block / blocks_per_outer() * inner + block % blocks_per_outer() * kAxisRowBlock;
  }
  int64_t row_count(int64_t block) const {
    return contiguous() ? std::min(kAxisRowBlock, outer - first_row(block))
                        : std::min(kAxisRowBlock, inner - block % blocks_per_outer() * kAxisRowBlock);
  }
  int64_t offset(int64_t row) const { return row / inner * length * inner + row % inner; }
  // Elements of a copied block.
  int64_t block_elements() const { return contiguous() ? 0 : kAxisRowBlock * length; }
};

// The `count` rows from `row` on into `block`, one after the other.
template <typename T>
void GatherRows(const AxisRows& axis, const T* tensor, int64_t row, int64_t count, T* block) {
  const T* from = tensor + axis.offset(row);
  for (int64_t i = 0; i < axis.length; ++i) {
    for (int64_t r = 0; r < count; ++r) block[r * axis.length + i] = from[i * axis.inner + r];
  }
}

template <typename T>
void ScatterRows(const AxisRows& axis, const T* block, int64_t row, int64_t count, T* tensor) {
  T* to = tensor + axis.offset(row);
  for (int64_t i = 0; i < axis.length; ++i) {
    for (int64_t r = 0; r < count; ++r) to[i * axis.inner + r] = block[r * axis.length + i];
  }
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_AXIS_ROWS_H_
