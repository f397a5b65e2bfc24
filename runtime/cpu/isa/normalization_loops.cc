// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/isa/normalization_loops.h"

namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE {
namespace {

constexpr int64_t kBlock = 128;  // so many floats are added before the sum becomes double, vectorised or not

inline int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// Sum of term(i): lanes are floats of their own, vectorised or not, and become double after each block.
template <typename T, typename Term>
inline double SumOf(int64_t count, const Term& term) {
  constexpr int64_t kLanes = 16;
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = Least(count, begin + kBlock);
    T lanes[kLanes] = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
    }
    for (int64_t lane = 0; i < end; ++i, ++lane) lanes[lane] += term(i);
    for (T lane : lanes) total += lane;
  }
  return total;
}

template <typename T>
inline double Sum(const T* x, int64_t count) {
  return SumOf<T>(count, [x](int64_t i) { return x[i]; });
}

template <typename T>
inline double Squares(const T* x, T mean, int64_t count) {
  return SumOf<T>(count, [x, mean](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
}

template <typename T>
inline void Dot(const T* dy, const T* x, T mean, int64_t count, double* sum, double* dot) {
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = Least(count, begin + kBlock);
    T sum_block = 0, dot_block = 0;
#pragma omp simd reduction(+ : sum_block, dot_block)
    for (int64_t i = begin; i < end; ++i) {
      sum_block += dy[i];
      dot_block += dy[i] * (x[i] - mean);
    }
    *sum += sum_block;
    *dot += dot_block;
  }
}

template <typename T>
inline void Affine(const T* x, T mean, T factor, T shift, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * factor + shift;
}

template <typename T>
inline void Gradient(const T* dy, const T* x, T mean, T a, T b, T c, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * a - b - (x[i] - mean) * c;
}

template <typename T>
inline void Scale(const T* x, T mean, T factor, const T* scale, const T* bias, T* y, int64_t count) {
  if (bias == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * factor * scale[i];
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * factor * scale[i] + bias[i];
}

template <typename T>
inline void ScaledDot(const T* dy, const T* x, const T* scale, T mean, T factor, int64_t count, double* sum,
                      double* dot, T* dscale, T* dbias) {
  double sum_total = 0, dot_total = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = Least(count, begin + kBlock);
    T sum_block = 0, dot_block = 0;
#pragma omp simd reduction(+ : sum_block, dot_block)
    for (int64_t i = begin; i < end; ++i) {
      const T centred = x[i] - mean;
      sum_block += dy[i] * scale[i];
      dot_block += dy[i] * scale[i] * centred;
      dscale[i] += dy[i] * (centred * factor);
      dbias[i] += dy[i];
    }
    sum_total += sum_block;
    dot_total += dot_block;
  }
  *sum = sum_total;
  *dot = dot_total;
}

template <typename T>
inline void ScaledGradient(const T* dy, const T* x, const T* scale, T mean, T a, T b, T c, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * scale[i] * a - b - (x[i] - mean) * c;
}

}  // namespace

#define ONNXTRAIN_DEFINE_NORMALIZATION_LOOPS(T)                                                                  \
  double SumRun(const T* x, int64_t count) { return Sum(x, count); }                                             \
  double SquaresRun(const T* x, T mean, int64_t count) { return Squares(x, mean, count); }                       \
  void DotRun(const T* dy, const T* x, T mean, int64_t count, double* sum, double* dot) {                        \
    Dot(dy, x, mean, count, sum, dot);                                                                           \
  }                                                                                                              \
  void AffineRun(const T* x, T mean, T factor, T shift, T* y, int64_t count) {                                   \
    Affine(x, mean, factor, shift, y, count);                                                                    \
  }                                                                                                              \
  void GradientRun(const T* dy, const T* x, T mean, T a, T b, T c, T* dx, int64_t count) {                       \
    Gradient(dy, x, mean, a, b, c, dx, count);                                                                   \
  }                                                                                                              \
  void ScaleRow(const T* x, T mean, T factor, const T* scale, const T* bias, T* y, int64_t count) {              \
    Scale(x, mean, factor, scale, bias, y, count);                                                               \
  }                                                                                                              \
  void ScaledDotRow(const T* dy, const T* x, const T* scale, T mean, T factor, int64_t count, double* sum,       \
                    double* dot, T* dscale, T* dbias) {                                                          \
    ScaledDot(dy, x, scale, mean, factor, count, sum, dot, dscale, dbias);                                       \
  }                                                                                                              \
  void ScaledGradientRow(const T* dy, const T* x, const T* scale, T mean, T a, T b, T c, T* dx, int64_t count) { \
    ScaledGradient(dy, x, scale, mean, a, b, c, dx, count);                                                      \
  }
ONNXTRAIN_DEFINE_NORMALIZATION_LOOPS(float)
ONNXTRAIN_DEFINE_NORMALIZATION_LOOPS(double)

}  // namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE
