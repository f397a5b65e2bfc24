// SPDX-License-Identifier: Apache-2.0
// Sums and maps over runs of contiguous elements that normalizations are made of. One thread. Sums of floats are taken
// in lanes over short blocks and from block to block in double. `xc` stands for x - mean. Results may overwrite x or
// dy.
#ifndef ONNXTRAIN_RUNTIME_CPU_ISA_NORMALIZATION_LOOPS_H_
#define ONNXTRAIN_RUNTIME_CPU_ISA_NORMALIZATION_LOOPS_H_

#include <cstdint>

#include "runtime/cpu/isa_level.h"

namespace onnxtrain {

// For T = float and double:
//   SumRun: sum x              SquaresRun: sum xc^2              DotRun: *sum += sum dy, *dot += sum dy xc
//   AffineRun: y = xc factor + shift                             GradientRun: dx = dy a - b - xc c
//   ScaleRow: y = xc factor scale + bias (null: none)
//   ScaledDotRow: *sum = sum g, *dot = sum g xc for g = dy scale; dscale += dy xc factor, dbias += dy
//   ScaledGradientRow: dx = dy scale a - b - xc c
// clang-format off
#define ONNXTRAIN_NORMALIZATION_LOOPS(T)                                                                       \
  double SumRun(const T* x, int64_t count);                                                                    \
  double SquaresRun(const T* x, T mean, int64_t count);                                                        \
  void DotRun(const T* dy, const T* x, T mean, int64_t count, double* sum, double* dot);                       \
  void AffineRun(const T* x, T mean, T factor, T shift, T* y, int64_t count);                                  \
  void GradientRun(const T* dy, const T* x, T mean, T a, T b, T c, T* dx, int64_t count);                      \
  void ScaleRow(const T* x, T mean, T factor, const T* scale, const T* bias, T* y, int64_t count);             \
  void ScaledDotRow(const T* dy, const T* x, const T* scale, T mean, T factor, int64_t count, double* sum,     \
                    double* dot, T* dscale, T* dbias);                                                         \
  void ScaledGradientRow(const T* dy, const T* x, const T* scale, T mean, T a, T b, T c, T* dx, int64_t count);
ONNXTRAIN_FOR_EACH_ISA(ONNXTRAIN_NORMALIZATION_LOOPS(float) ONNXTRAIN_NORMALIZATION_LOOPS(double))
#undef ONNXTRAIN_NORMALIZATION_LOOPS
// clang-format on

// The loops of this processor for one element type.
template <typename T>
struct NormalizationLoops {
  using Sum = double (*)(const T*, int64_t);
  using Squares = double (*)(const T*, T, int64_t);
  using Dot = void (*)(const T*, const T*, T, int64_t, double*, double*);
  using Affine = void (*)(const T*, T, T, T, T*, int64_t);
  using Gradient = void (*)(const T*, const T*, T, T, T, T, T*, int64_t);
  using Scale = void (*)(const T*, T, T, const T*, const T*, T*, int64_t);
  using ScaledDot = void (*)(const T*, const T*, const T*, T, T, int64_t, double*, double*, T*, T*);
  using ScaledGradient = void (*)(const T*, const T*, const T*, T, T, T, T, T*, int64_t);
  Sum sum = ONNXTRAIN_SELECT_ISA_AS(Sum, SumRun);
  Squares squares = ONNXTRAIN_SELECT_ISA_AS(Squares, SquaresRun);
  Dot dot = ONNXTRAIN_SELECT_ISA_AS(Dot, DotRun);
  Affine affine = ONNXTRAIN_SELECT_ISA_AS(Affine, AffineRun);
  Gradient gradient = ONNXTRAIN_SELECT_ISA_AS(Gradient, GradientRun);
  Scale scale = ONNXTRAIN_SELECT_ISA_AS(Scale, ScaleRow);
  ScaledDot scaled_dot = ONNXTRAIN_SELECT_ISA_AS(ScaledDot, ScaledDotRow);
  ScaledGradient scaled_gradient = ONNXTRAIN_SELECT_ISA_AS(ScaledGradient, ScaledGradientRow);
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_ISA_NORMALIZATION_LOOPS_H_
