// SPDX-License-Identifier: Apache-2.0
// Functions of one number over n neighbours. y may be x (dx may be p or dy), but may not overlap it otherwise. One
// thread. What each computes: runtime/math/activation.h and runtime/math/functions.h.
#ifndef ONNXTRAIN_RUNTIME_CPU_ISA_UNARY_LOOPS_H_
#define ONNXTRAIN_RUNTIME_CPU_ISA_UNARY_LOOPS_H_

#include <cstdint>

#include "runtime/cpu/isa_level.h"
#include "runtime/math/activation.h"
#include "runtime/math/unary_function.h"

namespace onnxtrain {

template <typename T>
struct UnaryLoops {
  void (*value)(math::ActivationScalars<T> scalars, const T* x, T* y, int64_t n) = nullptr;
  void (*gradient)(math::ActivationScalars<T> scalars, const T* p, const T* dy, T* dx, int64_t n) = nullptr;
};

ONNXTRAIN_FOR_EACH_ISA(UnaryLoops<float> FloatUnaryLoops(UnaryFunction function);
                       UnaryLoops<double> DoubleUnaryLoops(UnaryFunction function);
                       // dx = dy where lower < x < upper, else 0; y = x limited to the bounds. NaN passes.
                       void ClipFloat(float lower, float upper, const float* x, float* y, int64_t n);
                       void ClipDouble(double lower, double upper, const double* x, double* y, int64_t n);
                       void ClipGradFloat(float lower, float upper, const float* x, const float* dy, float* dx,
                                          int64_t n);
                       void ClipGradDouble(double lower, double upper, const double* x, const double* dy, double* dx,
                                           int64_t n);)

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_ISA_UNARY_LOOPS_H_
