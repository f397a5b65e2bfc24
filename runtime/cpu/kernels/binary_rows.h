// SPDX-License-Identifier: Apache-2.0
// Functions of two broadcast operands, row by row.
#ifndef ONNXTRAIN_RUNTIME_CPU_KERNELS_BINARY_ROWS_H_
#define ONNXTRAIN_RUNTIME_CPU_KERNELS_BINARY_ROWS_H_

#include "runtime/cpu/strided_rows.h"

namespace onnxtrain {

// Operand `a` and `b` broadcast to y; y is walked last.
inline StridedRows<3> RowsOf(const Shape& a, const Shape& b, const Shape& y) {
  return StridedRows<3>(y, {BroadcastStrides(a, y), BroadcastStrides(b, y), DenseStrides(y)});
}

// y = loop(a, b) over all rows.
template <typename T, typename Result, typename Loop>
void RunRows(const StridedRows<3>& rows, int threads, int64_t grain, const T* a, const T* b, Result* y, Loop loop) {
  const auto& steps = rows.steps();
  rows.ForEach(threads, grain,
               [&](const auto& at, int64_t n) { loop(a + at[0], steps[0], b + at[1], steps[1], y + at[2], n); });
}

template <auto kFormula, typename T, typename Result>
void PlainLoop(const T* a, int64_t a_step, const T* b, int64_t b_step, Result* y, int64_t n) {
  if (a_step == 1 && b_step == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = kFormula(a[i], b[i]);
  } else if (a_step == 1) {
    const T right = *b;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = kFormula(a[i], right);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = kFormula(a[i * a_step], b[i * b_step]);
  }
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_KERNELS_BINARY_ROWS_H_
