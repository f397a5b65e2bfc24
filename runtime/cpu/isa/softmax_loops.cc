// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/isa/softmax_loops.h"

#include "runtime/math/exponential.h"

namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE {
namespace {

template <typename T>
inline T Largest(const T* x, int64_t count) {
  T largest = x[0];
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// y = exp(x - offset); returns the sum.
template <typename T>
inline T Exponentials(const T* x, T offset, T* y, int64_t count) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const T e = math::Exp(x[i] - offset);
    y[i] = e;
    sum += e;
  }
  return sum;
}

template <typename T>
inline T SumOfExponentials(const T* x, T offset, int64_t count) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += math::Exp(x[i] - offset);
  return sum;
}

template <typename T>
inline void Softmax(const T* x, T* y, int64_t count) {
  const T scale = 1 / Exponentials(x, Largest(x, count), y, count);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] *= scale;
}

template <typename T>
inline void ScaledSoftmax(const T* x, T factor, T shift, T* y, int64_t count) {
  const T scale = factor / Exponentials(x, Largest(x, count), y, count);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = y[i] * scale - shift;
}

inline float Log(float x) { return __builtin_logf(x); }
inline double Log(double x) { return __builtin_log(x); }

template <typename T>
inline T LogSum(const T* x, int64_t count, T* largest) {
  *largest = Largest(x, count);
  return Log(SumOfExponentials(x, *largest, count));
}

// Two steps, x - max and then - log sum, keep small differences of large numbers.
template <typename T>
inline void LogSoftmax(const T* x, T* y, int64_t count) {
  T largest;
  const T log_sum = LogSum(x, count, &largest);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - largest) - log_sum;
}

template <typename T>
inline void SoftmaxGradient(const T* dy, const T* y, T* dx, int64_t count) {
  T dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t i = 0; i < count; ++i) dot += dy[i] * y[i];
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = y[i] * (dy[i] - dot);
}

template <typename T>
inline void LogSoftmaxGradient(const T* dy, const T* y, T* dx, int64_t count) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += dy[i];
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] - math::Exp(y[i]) * sum;
}

}  // namespace

#define ONNXTRAIN_DEFINE_SOFTMAX_LOOPS(T)                                                                             \
  void SoftmaxRow(const T* x, T* y, int64_t count) { Softmax(x, y, count); }                                          \
  void LogSoftmaxRow(const T* x, T* y, int64_t count) { LogSoftmax(x, y, count); }                                    \
  void SoftmaxGradientRow(const T* dy, const T* y, T* dx, int64_t count) { SoftmaxGradient(dy, y, dx, count); }       \
  void LogSoftmaxGradientRow(const T* dy, const T* y, T* dx, int64_t count) { LogSoftmaxGradient(dy, y, dx, count); } \
  void ScaledSoftmaxRow(const T* x, T factor, T shift, T* y, int64_t count) {                                         \
    ScaledSoftmax(x, factor, shift, y, count);                                                                        \
  }                                                                                                                   \
  T LogSumRow(const T* x, int64_t count, T* largest) { return LogSum(x, count, largest); }
ONNXTRAIN_DEFINE_SOFTMAX_LOOPS(float)
ONNXTRAIN_DEFINE_SOFTMAX_LOOPS(double)

}  // namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE
