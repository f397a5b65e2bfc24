// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/isa/transpose_loops.h"

namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE {
namespace {

// 32 bytes, as 8 or 4 elements; loads need no alignment.
typedef uint32_t Eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint64_t Four __attribute__((vector_size(32), aligned(8), may_alias));

inline __attribute__((always_inline)) void Block(const uint64_t* x, int64_t x_stride, uint64_t* y, int64_t y_stride) {
  Four row[4];
  for (int i = 0; i < 4; ++i) row[i] = *reinterpret_cast<const Four*>(x + i * x_stride);
  const Four low0 = __builtin_shufflevector(row[0], row[1], 0, 4, 2, 6);
  const Four high0 = __builtin_shufflevector(row[0], row[1], 1, 5, 3, 7);
  const Four low1 = __builtin_shufflevector(row[2], row[3], 0, 4, 2, 6);
  const Four high1 = __builtin_shufflevector(row[2], row[3], 1, 5, 3, 7);
  *reinterpret_cast<Four*>(y) = __builtin_shufflevector(low0, low1, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(y + y_stride) = __builtin_shufflevector(high0, high1, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(y + 2 * y_stride) = __builtin_shufflevector(low0, low1, 2, 3, 6, 7);
  *reinterpret_cast<Four*>(y + 3 * y_stride) = __builtin_shufflevector(high0, high1, 2, 3, 6, 7);
}

// Pairs of rows are interleaved by 1, 2 and 4 elements in turn.
inline __attribute__((always_inline)) void Block(const uint32_t* x, int64_t x_stride, uint32_t* y, int64_t y_stride) {
  Eight row[8], one[8], two[8];
  for (int i = 0; i < 8; ++i) row[i] = *reinterpret_cast<const Eight*>(x + i * x_stride);
  for (int i = 0; i < 8; i += 2) {
    one[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    one[i + 1] = __builtin_shufflevector(row[i], row[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      two[i + j] = __builtin_shufflevector(one[i + j], one[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      two[i + j + 2] = __builtin_shufflevector(one[i + j], one[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int j = 0; j < 4; ++j) {
    *reinterpret_cast<Eight*>(y + j * y_stride) = __builtin_shufflevector(two[j], two[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    *reinterpret_cast<Eight*>(y + (j + 4) * y_stride) =
        __builtin_shufflevector(two[j], two[j + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

template <typename Bits>
inline void Plain(const Bits* x, int64_t x_stride, Bits* y, int64_t y_stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) y[r * y_stride + c] = x[c * x_stride + r];
  }
}

// Columns run inside a band of kBlock rows: each row of the band is written in order, each line of x is read once.
template <typename Bits>
inline void Transpose(const Bits* x, int64_t x_stride, Bits* y, int64_t y_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kBlock = 32 / static_cast<int64_t>(sizeof(Bits));
  const int64_t whole_columns = columns / kBlock * kBlock;
  int64_t r = 0;
  for (; r + kBlock <= rows; r += kBlock) {
    for (int64_t c = 0; c < whole_columns; c += kBlock) {
      Block(x + c * x_stride + r, x_stride, y + r * y_stride + c, y_stride);
    }
  }
  const int64_t whole_rows = r;
  Plain(x + whole_columns * x_stride, x_stride, y + whole_columns, y_stride, whole_rows, columns - whole_columns);
  Plain(x + whole_rows, x_stride, y + whole_rows * y_stride, y_stride, rows - whole_rows, columns);
}

}  // namespace

void Transpose4(const uint32_t* x, int64_t x_stride, uint32_t* y, int64_t y_stride, int64_t rows, int64_t columns) {
  Transpose(x, x_stride, y, y_stride, rows, columns);
}
void Transpose8(const uint64_t* x, int64_t x_stride, uint64_t* y, int64_t y_stride, int64_t rows, int64_t columns) {
  Transpose(x, x_stride, y, y_stride, rows, columns);
}

}  // namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE
