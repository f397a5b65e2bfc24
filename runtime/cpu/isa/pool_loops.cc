// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/isa/pool_loops.h"

namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE {
namespace {

// kStride 0: only known at run time.
template <int kStride, typename T>
inline void Max(const T* x, int64_t stride, T* y, int64_t count) {
  const int64_t step = kStride == 0 ? stride : kStride;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const T value = x[i * step];
    y[i] = (value > y[i] || value != value) ? value : y[i];
  }
}

template <int kStride, typename T>
inline void Add(const T* x, int64_t stride, T* y, int64_t count) {
  const int64_t step = kStride == 0 ? stride : kStride;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] += x[i * step];
}

template <int kStride, typename T>
inline void Spread(const T* dy, const T* reciprocals, T* dx, int64_t stride, int64_t count) {
  const int64_t step = kStride == 0 ? stride : kStride;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i * step] += dy[i] * reciprocals[i];
}

}  // namespace

#define ONNXTRAIN_BY_STRIDE(Function, ...)          \
  if (stride == 1) return Function<1>(__VA_ARGS__); \
  if (stride == 2) return Function<2>(__VA_ARGS__); \
  return Function<0>(__VA_ARGS__)

#define ONNXTRAIN_DEFINE_POOL_LOOPS(T)                                                                            \
  void MaxRun(const T* x, int64_t stride, T* y, int64_t count) { ONNXTRAIN_BY_STRIDE(Max, x, stride, y, count); } \
  void AddRun(const T* x, int64_t stride, T* y, int64_t count) { ONNXTRAIN_BY_STRIDE(Add, x, stride, y, count); } \
  void SpreadRun(const T* dy, const T* reciprocals, T* dx, int64_t stride, int64_t count) {                       \
    ONNXTRAIN_BY_STRIDE(Spread, dy, reciprocals, dx, stride, count);                                              \
  }
ONNXTRAIN_DEFINE_POOL_LOOPS(float)
ONNXTRAIN_DEFINE_POOL_LOOPS(double)

}  // namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE
