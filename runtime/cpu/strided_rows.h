// SPDX-License-Identifier: Apache-2.0
// A loop nest over operands of one shape and different strides, made once: axes that all operands walk alike are
// merged, the innermost becomes the row that a vector loop works on, the others are counted through.
#ifndef ONNXTRAIN_RUNTIME_CPU_STRIDED_ROWS_H_
#define ONNXTRAIN_RUNTIME_CPU_STRIDED_ROWS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "graph/tensor.h"
#include "runtime/cpu/parallel_for.h"

namespace onnxtrain {

using Strides = std::vector<int64_t>;  // elements, one per axis

// Of a dense tensor.
Strides DenseStrides(const Shape& shape);
// Of a dense operand of shape `from` that is broadcast to `to`: 0 along stretched and added axes.
Strides BroadcastStrides(const Shape& from, const Shape& to);

template <size_t kOperands>
class StridedRows {
 public:
  using Offsets = std::array<int64_t, kOperands>;

  StridedRows() = default;
  // strides[k] has one entry per axis of `shape`; `start` is where the first element of each operand lies.
  StridedRows(const Shape& shape, const std::array<Strides, kOperands>& strides, Offsets start = {});

  int64_t rows() const { return rows_; }
  int64_t row_length() const { return length_; }
  // Distance of neighbours in a row.
  const Offsets& steps() const { return steps_; }

  // body(offsets, n): n elements of a row from there. Rows are cut at multiples of kPiece only, whatever the number of
  // threads. A thread gets at least `grain` elements.
  template <typename Body>
  void ForEach(int threads, int64_t grain, const Body& body) const;

 private:
  static constexpr int64_t kPiece = 4096;

  // Calls body for pieces [begin, end) of the whole, counted row by row.
  template <typename Body>
  void Walk(int64_t begin, int64_t end, const Body& body) const;
  Offsets OffsetsOfRow(int64_t row, int64_t* index) const;

  static constexpr size_t kMaxAxes = 32;

  int64_t rows_ = 0;
  int64_t length_ = 0;
  int64_t pieces_ = 1;  // per row
  Offsets steps_ = {};
  Offsets start_ = {};
  std::vector<int64_t> extents_;  // of the outer axes, outermost first
  std::vector<Offsets> strides_;
};

template <size_t kOperands>
StridedRows<kOperands>::StridedRows(const Shape& shape, const std::array<Strides, kOperands>& strides, Offsets start)
    : rows_(1), length_(1), start_(start) {
  std::vector<int64_t> extents;
  std::vector<Offsets> axes;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    Offsets stride;
    for (size_t k = 0; k < kOperands; ++k) stride[k] = strides[k][axis];
    bool joins = !axes.empty();
    for (size_t k = 0; k < kOperands && joins; ++k) joins = axes.back()[k] == stride[k] * shape[axis];
    if (joins) {
      extents.back() *= shape[axis];
      axes.back() = stride;
    } else {
      extents.push_back(shape[axis]);
      axes.push_back(stride);
    }
  }
  if (!extents.empty()) {
    length_ = extents.back();
    steps_ = axes.back();
    extents.pop_back();
    axes.pop_back();
  }
  CHECK(extents.size() <= kMaxAxes);
  for (int64_t extent : extents) rows_ *= extent;
  if (length_ == 0) rows_ = 0;
  pieces_ = std::max<int64_t>(1, (length_ + kPiece - 1) / kPiece);
  extents_ = std::move(extents);
  strides_ = std::move(axes);
}

template <size_t kOperands>
typename StridedRows<kOperands>::Offsets StridedRows<kOperands>::OffsetsOfRow(int64_t row, int64_t* index) const {
  Offsets offsets = start_;
  for (size_t axis = extents_.size(); axis-- > 0;) {
    index[axis] = row % extents_[axis];
    row /= extents_[axis];
    for (size_t k = 0; k < kOperands; ++k) offsets[k] += index[axis] * strides_[axis][k];
  }
  return offsets;
}

template <size_t kOperands>
template <typename Body>
void StridedRows<kOperands>::Walk(int64_t begin, int64_t end, const Body& body) const {
  int64_t index[kMaxAxes];
  int64_t piece = begin % pieces_;
  Offsets row = OffsetsOfRow(begin / pieces_, index);
  while (true) {
    const int64_t last = std::min(pieces_, piece + (end - begin));
    const int64_t first_element = piece * kPiece;
    Offsets offsets = row;
    for (size_t k = 0; k < kOperands; ++k) offsets[k] += first_element * steps_[k];
    body(offsets, std::min(last * kPiece, length_) - first_element);
    begin += last - piece;
    if (begin >= end) return;
    piece = 0;
    for (size_t axis = extents_.size(); axis-- > 0;) {
      for (size_t k = 0; k < kOperands; ++k) row[k] += strides_[axis][k];
      if (++index[axis] < extents_[axis]) break;
      for (size_t k = 0; k < kOperands; ++k) row[k] -= extents_[axis] * strides_[axis][k];
      index[axis] = 0;
    }
  }
}

template <size_t kOperands>
template <typename Body>
void StridedRows<kOperands>::ForEach(int threads, int64_t grain, const Body& body) const {
  const int64_t piece_length = std::min(length_, kPiece);
  ParallelFor(threads, rows_ * pieces_, std::max<int64_t>(1, grain / std::max<int64_t>(piece_length, 1)),
              [&](int64_t begin, int64_t end) { Walk(begin, end, body); });
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_STRIDED_ROWS_H_
