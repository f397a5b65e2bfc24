// SPDX-License-Identifier: Apache-2.0
// One offset of a pool's window along one row of outputs: input i * stride belongs to output i.
#ifndef ONNXTRAIN_RUNTIME_CPU_ISA_POOL_LOOPS_H_
#define ONNXTRAIN_RUNTIME_CPU_ISA_POOL_LOOPS_H_

#include <cstdint>

#include "runtime/cpu/isa_level.h"

namespace onnxtrain {

// For T = float and double:
//   MaxRun: y[i] = max(y[i], x[i * stride]), NaN wins       AddRun: y[i] += x[i * stride]
//   SpreadRun: dx[i * stride] += dy[i] / count[i], the reciprocals of the counts being given
// clang-format off
#define ONNXTRAIN_POOL_LOOPS(T)                                                                        \
  void MaxRun(const T* x, int64_t stride, T* y, int64_t count);                                        \
  void AddRun(const T* x, int64_t stride, T* y, int64_t count);                                        \
  void SpreadRun(const T* dy, const T* reciprocals, T* dx, int64_t stride, int64_t count);
ONNXTRAIN_FOR_EACH_ISA(ONNXTRAIN_POOL_LOOPS(float) ONNXTRAIN_POOL_LOOPS(double))
#undef ONNXTRAIN_POOL_LOOPS
// clang-format on

// The loops of this processor for one element type.
template <typename T>
struct PoolLoops {
  using Gather = void (*)(const T*, int64_t, T*, int64_t);
  using Scatter = void (*)(const T*, const T*, T*, int64_t, int64_t);
  Gather max = ONNXTRAIN_SELECT_ISA_AS(Gather, MaxRun);
  Gather add = ONNXTRAIN_SELECT_ISA_AS(Gather, AddRun);
  Scatter spread = ONNXTRAIN_SELECT_ISA_AS(Scatter, SpreadRun);
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_ISA_POOL_LOOPS_H_
