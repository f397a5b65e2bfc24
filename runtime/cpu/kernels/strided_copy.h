// SPDX-License-Identifier: Apache-2.0
// Copies between strided views of dense tensors: the core of every operator that only moves elements.
#ifndef ONNXTRAIN_RUNTIME_CPU_KERNELS_STRIDED_COPY_H_
#define ONNXTRAIN_RUNTIME_CPU_KERNELS_STRIDED_COPY_H_

#include <algorithm>
#include <cstring>

#include "runtime/cpu/pieces.h"
#include "runtime/cpu/strided_rows.h"

namespace onnxtrain {

// Operand 0 of the rows is read, operand 1 written. Bits has the size of an element.
template <typename Bits>
void CopyStrided(const StridedRows<2>& rows, int threads, const Bits* from, Bits* to) {
  const int64_t from_step = rows.steps()[0];
  const int64_t to_step = rows.steps()[1];
  rows.ForEach(threads, kMoveGrain, [&](const auto& at, int64_t n) {
    const Bits* x = from + at[0];
    Bits* y = to + at[1];
    if (from_step == 1 && to_step == 1) {
      std::memcpy(y, x, static_cast<size_t>(n) * sizeof(Bits));
    } else if (from_step == 0 && to_step == 1) {
      std::fill_n(y, n, *x);
    } else {
      for (int64_t i = 0; i < n; ++i) y[i * to_step] = x[i * from_step];
    }
  });
}

template <typename Bits>
void FillParallel(int threads, Bits* to, int64_t count, Bits value) {
  ForEachPiece(threads, count, kMoveGrain, [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, value); });
}

template <typename Bits>
void CopyParallel(int threads, const Bits* from, Bits* to, int64_t count) {
  if (from == to) return;
  ForEachPiece(threads, count, kMoveGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin) * sizeof(Bits));
  });
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_KERNELS_STRIDED_COPY_H_
