// SPDX-License-Identifier: Apache-2.0
// Softmax and what is made of it, for one row of `count` >= 1 contiguous elements. Results may overwrite arguments of
// the same length. Sums run in lanes of fixed number per instruction set, so that equal processors give equal bits.
#ifndef ONNXTRAIN_RUNTIME_CPU_ISA_SOFTMAX_LOOPS_H_
#define ONNXTRAIN_RUNTIME_CPU_ISA_SOFTMAX_LOOPS_H_

#include <cstdint>

#include "runtime/cpu/isa_level.h"

namespace onnxtrain {

// For T = float and double:
//   SoftmaxRow: y = exp(x - max) / sum exp(x - max)          LogSoftmaxRow: y = (x - max) - log sum
//   SoftmaxGradientRow: dx = y (dy - sum dy y)               LogSoftmaxGradientRow: dx = dy - exp(y) sum dy
//   LogSumRow: log sum exp(x - max) and the max
//   ScaledSoftmaxRow: y = factor * softmax(x) - shift, one pass of exp
// clang-format off
#define ONNXTRAIN_SOFTMAX_LOOPS(T)                                                    \
  void SoftmaxRow(const T* x, T* y, int64_t count);                                   \
  void LogSoftmaxRow(const T* x, T* y, int64_t count);                                \
  void SoftmaxGradientRow(const T* dy, const T* y, T* dx, int64_t count);             \
  void LogSoftmaxGradientRow(const T* dy, const T* y, T* dx, int64_t count);          \
  void ScaledSoftmaxRow(const T* x, T factor, T shift, T* y, int64_t count);          \
  T LogSumRow(const T* x, int64_t count, T* largest);
ONNXTRAIN_FOR_EACH_ISA(ONNXTRAIN_SOFTMAX_LOOPS(float) ONNXTRAIN_SOFTMAX_LOOPS(double))
#undef ONNXTRAIN_SOFTMAX_LOOPS
// clang-format on

// The loops of this processor for one element type.
template <typename T>
struct SoftmaxLoops {
  using Map = void (*)(const T*, T*, int64_t);
  using Gradient = void (*)(const T*, const T*, T*, int64_t);
  using Scaled = void (*)(const T*, T, T, T*, int64_t);
  using LogSum = T (*)(const T*, int64_t, T*);
  Map softmax = ONNXTRAIN_SELECT_ISA_AS(Map, SoftmaxRow);
  Map log_softmax = ONNXTRAIN_SELECT_ISA_AS(Map, LogSoftmaxRow);
  Gradient softmax_gradient = ONNXTRAIN_SELECT_ISA_AS(Gradient, SoftmaxGradientRow);
  Gradient log_softmax_gradient = ONNXTRAIN_SELECT_ISA_AS(Gradient, LogSoftmaxGradientRow);
  Scaled scaled_softmax = ONNXTRAIN_SELECT_ISA_AS(Scaled, ScaledSoftmaxRow);
  LogSum log_sum = ONNXTRAIN_SELECT_ISA_AS(LogSum, LogSumRow);
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_ISA_SOFTMAX_LOOPS_H_
