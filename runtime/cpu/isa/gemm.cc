// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/isa/gemm.h"

namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kTileRows = 6;  // 6 x 2 sums, 2 columns and a factor stay in 16 registers

template <typename T>
struct Tile {
  typedef T Vector __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  static constexpr int kLanes = kVectorBytes / sizeof(T);
  static constexpr int kColumns = 2 * kLanes;
};

inline int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// Groups of `width` rows (columns of B) side by side, depth by depth, the last group filled up with zeros.
template <typename T>
void Pack(const T* source, int64_t across, int64_t along, int64_t width, int64_t count, int64_t depth, T factor,
          T* packed) {
  for (int64_t first = 0; first < count; first += width) {
    const int64_t full = Least(width, count - first);
    for (int64_t k = 0; k < depth; ++k) {
      const T* from = source + first * across + k * along;
      for (int64_t i = 0; i < full; ++i) packed[i] = factor * from[i * across];
      for (int64_t i = full; i < width; ++i) packed[i] = 0;
      packed += width;
    }
  }
}

template <typename T>
void MultiplyTile(const T* a, const T* b, int64_t depth, T* sums) {
  using Vector = typename Tile<T>::Vector;
  Vector left[kTileRows] = {}, right[kTileRows] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const Vector b0 = *reinterpret_cast<const Vector*>(b);
    const Vector b1 = *reinterpret_cast<const Vector*>(b + Tile<T>::kLanes);
#pragma GCC unroll 6
    for (int i = 0; i < kTileRows; ++i) {
      left[i] += a[i] * b0;
      right[i] += a[i] * b1;
    }
    a += kTileRows;
    b += Tile<T>::kColumns;
  }
  for (int i = 0; i < kTileRows; ++i) {
    *reinterpret_cast<Vector*>(sums + i * Tile<T>::kColumns) = left[i];
    *reinterpret_cast<Vector*>(sums + i * Tile<T>::kColumns + Tile<T>::kLanes) = right[i];
  }
}

template <typename T>
void StoreTile(const T* sums, int64_t rows, int64_t columns, bool add, T* c, int64_t c_row, int64_t c_column) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* from = sums + i * Tile<T>::kColumns;
    T* to = c + i * c_row;
    if (add) {
      for (int64_t j = 0; j < columns; ++j) to[j * c_column] += from[j];
    } else {
      for (int64_t j = 0; j < columns; ++j) to[j * c_column] = from[j];
    }
  }
}

template <typename T>
void MultiplyBlock(const GemmArguments<T>& s, int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t depth,
                   bool add, const T* packed_a, const T* packed_b) {
  alignas(64) T sums[kTileRows * Tile<T>::kColumns];
  for (int64_t j = 0; j < columns; j += Tile<T>::kColumns) {
    for (int64_t i = 0; i < rows; i += kTileRows) {
      MultiplyTile(packed_a + i * depth, packed_b + j * depth, depth, sums);
      StoreTile(sums, Least(kTileRows, rows - i), Least(Tile<T>::kColumns, columns - j), add,
                s.c + (row + i) * s.c_row + (column + j) * s.c_column, s.c_row, s.c_column);
    }
  }
}

template <typename T>
void Gemm(const GemmArguments<T>& s) {
  T* packed_a = s.pack;
  T* packed_b = s.pack + kGemmRowBlock * kGemmDepthBlock;
  for (int64_t column = 0; column < s.columns; column += kGemmColumnBlock) {
    const int64_t columns = Least(kGemmColumnBlock, s.columns - column);
    for (int64_t k = 0; k < s.depth; k += kGemmDepthBlock) {
      const int64_t depth = Least(kGemmDepthBlock, s.depth - k);
      Pack(s.b + k * s.b_row + column * s.b_column, s.b_column, s.b_row, Tile<T>::kColumns, columns, depth, T{1},
           packed_b);
      for (int64_t row = 0; row < s.rows; row += kGemmRowBlock) {
        const int64_t rows = Least(kGemmRowBlock, s.rows - row);
        Pack(s.a + row * s.a_row + k * s.a_column, s.a_row, s.a_column, kTileRows, rows, depth, s.alpha, packed_a);
        MultiplyBlock(s, row, rows, column, columns, depth, s.accumulate || k > 0, packed_a, packed_b);
      }
    }
  }
}

}  // namespace

void GemmFloat(const GemmArguments<float>& arguments) { Gemm(arguments); }
void GemmDouble(const GemmArguments<double>& arguments) { Gemm(arguments); }

}  // namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE
