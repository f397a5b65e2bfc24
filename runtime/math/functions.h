// SPDX-License-Identifier: Apache-2.0
// Elementary functions of one number, free of branches, so that loops over them become vector code.
//
// float: own polynomials and rational functions, fitted on the intervals that stand beside them; within 2 units in the
// last place of the exact value, Erf and Tanh within 5, where it is a normal number (tests/ops measures them). double:
// the C library's.
#ifndef ONNXTRAIN_RUNTIME_MATH_FUNCTIONS_H_
#define ONNXTRAIN_RUNTIME_MATH_FUNCTIONS_H_

#include <math.h>

#include <cstdint>

#include "runtime/math/exponential.h"
#include "runtime/math/host_device.h"

namespace onnxtrain::math {

ONNXTRAIN_HOST_DEVICE inline int32_t BitsOf(float x) { return __builtin_bit_cast(int32_t, x); }
ONNXTRAIN_HOST_DEVICE inline float FloatOf(int32_t bits) { return __builtin_bit_cast(float, bits); }

template <typename T>
ONNXTRAIN_HOST_DEVICE inline T Select(bool condition, T yes, T no) {
  return condition ? yes : no;
}

ONNXTRAIN_HOST_DEVICE inline float Abs(float x) { return FloatOf(BitsOf(x) & 0x7fffffff); }
ONNXTRAIN_HOST_DEVICE inline double Abs(double x) { return ::fabs(x); }
ONNXTRAIN_HOST_DEVICE inline float Sqrt(float x) { return __builtin_sqrtf(x); }
ONNXTRAIN_HOST_DEVICE inline double Sqrt(double x) { return __builtin_sqrt(x); }

// NaN in either argument gives NaN, as ONNX's Max and Min and PyTorch's have it.
template <typename T>
ONNXTRAIN_HOST_DEVICE inline T Max(T a, T b) {
  return a > b || a != a ? a : b;
}
template <typename T>
ONNXTRAIN_HOST_DEVICE inline T Min(T a, T b) {
  return a < b || a != a ? a : b;
}

// e^x - 1 without cancellation near 0.
ONNXTRAIN_HOST_DEVICE inline float Expm1(float x) {
  const float q =
      ((((0.0001994487444f * x + 0.001398218605f) * x + 0.008333236134f) * x + 0.04166579123f) * x + 0.166666668f) * x +
      0.5f;
  const float near = q * (x * x) + x;  // |x| <= 0.5
  const float far = Exp(x) - 1.0f;
  return Select(Abs(x) <= 0.5f, near, far);
}
ONNXTRAIN_HOST_DEVICE inline double Expm1(double x) { return ::expm1(x); }

// log x = e ln 2 + log(1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = 2 atanh(f / (2 + f)).
ONNXTRAIN_HOST_DEVICE inline float Log(float x) {
  const bool tiny = x < 1.17549435e-38f;  // scaled into the normal numbers
  const float scaled = Select(tiny, x * 8388608.0f, x);
  const int32_t bits = BitsOf(scaled);
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;
  const float f = FloatOf(bits - static_cast<int32_t>(static_cast<uint32_t>(exponent) << 23)) - 1.0f;
  const float e = static_cast<float>(exponent) - Select(tiny, 23.0f, 0.0f);
  const float s = f / (2.0f + f);
  const float z = s * s;
  const float r = (((0.2333681101f * z + 0.2855058704f) * z + 0.4000012391f) * z + 0.6666666655f) * z;  // |s| <= 0.172
  const float half_square = 0.5f * f * f;
  const float low = s * (half_square + r) + e * 9.05800061e-6f;
  const float result = e * 0.693138123f - ((half_square - low) - f);
  const float infinity = __builtin_inff();
  const float checked = Select(x == infinity, infinity, Select(x == 0.0f, -infinity, result));
  return Select(x >= 0.0f, checked, __builtin_nanf(""));
}
ONNXTRAIN_HOST_DEVICE inline double Log(double x) { return ::log(x); }

// log(1 + x): the logarithm of the rounded sum, corrected by what rounding lost.
ONNXTRAIN_HOST_DEVICE inline float Log1p(float x) {
  const float sum = 1.0f + x;
  const float lost = x - (sum - 1.0f);
  const float corrected = Log(sum) + lost / sum;
  return Select(sum == __builtin_inff(), sum, corrected);
}
ONNXTRAIN_HOST_DEVICE inline double Log1p(double x) { return ::log1p(x); }

template <typename T>
ONNXTRAIN_HOST_DEVICE inline T Clamp(T x, T low, T high) {  // NaN stays
  return Select(x < low, low, Select(x > high, high, x));
}

// x P(x^2) / Q(x^2) with a relative error of 2e-8 on [-3.925, 3.925]; 1 beyond in single precision.
ONNXTRAIN_HOST_DEVICE inline float Erf(float x) {
  const float t = Clamp(x, -3.925f, 3.925f);
  const float z = t * t;
  const float p =
      ((((2.046026891e-6f * z + 2.848443993e-4f) * z + 0.003772575317f) * z + 0.05276937521f) * z + 0.1905943045f) * z +
      1.128379146f;
  const float q =
      ((((3.804781519e-5f * z + 0.001163864478f) * z + 0.01498324748f) * z + 0.1141829527f) * z + 0.5022425347f) * z +
      1.0f;
  return Clamp(t * p / q, -1.0f, 1.0f);
}
ONNXTRAIN_HOST_DEVICE inline double Erf(double x) { return ::erf(x); }

// x P(x^2) / Q(x^2) with a relative error of 2e-8 on [-9.02, 9.02]; 1 beyond in single precision.
ONNXTRAIN_HOST_DEVICE inline float Tanh(float x) {
  const float t = Clamp(x, -9.02f, 9.02f);
  const float z = t * t;
  const float p =
      (((1.331881485e-8f * z + 2.058328505e-5f) * z + 0.003494022206f) * z + 0.1337970741f) * z + 0.999999979f;
  const float q = (((7.761911013e-7f * z + 3.283072932e-4f) * z + 0.02587102578f) * z + 0.4671302264f) * z + 1.0f;
  return Clamp(t * p / q, -1.0f, 1.0f);
}
ONNXTRAIN_HOST_DEVICE inline double Tanh(double x) { return ::tanh(x); }

// 1 / (1 + e^-x), through e^-|x| so that small results keep their precision.
template <typename T>
ONNXTRAIN_HOST_DEVICE inline T Sigmoid(T x) {
  const T e = Exp(-Abs(x));
  return Select(x >= T(0), T(1), e) / (T(1) + e);
}

// The normal distribution function and e^(-x^2/2), which is its density times sqrt(2 pi).
template <typename T>
struct Normal {
  T distribution;
  T exponential;
};

// Phi(-a) = e^(-a^2/2) R(1 / (1 + 0.3 a)) for a >= 0; the relative error of R is 6e-8 up to a = 13.5.
ONNXTRAIN_HOST_DEVICE inline Normal<float> NormalOf(float x) {
  const float e = Exp(-0.5f * (x * x));
  const float s = 1.0f / (1.0f + 0.3f * Abs(x));
  const float r =
      (((((((0.03833775444f * s - 0.1689682097f) * s + 0.2282493067f) * s - 0.07603424848f) * s + 0.1422075538f) * s +
         0.09482404529f) *
            s +
        0.121884167f) *
           s +
       0.1194927922f) *
          s +
      6.867414331e-6f;
  const float tail = e * r;
  return {Select(x > 0.0f, 1.0f - tail, tail), e};
}
ONNXTRAIN_HOST_DEVICE inline Normal<double> NormalOf(double x) {
  return {0.5 * ::erfc(x * -0.70710678118654752440), ::exp(-0.5 * x * x)};
}

// log(1 + e^x)
template <typename T>
ONNXTRAIN_HOST_DEVICE inline T Softplus(T x) {
  return Select(x > T(0), x, T(0)) + Log1p(Exp(-Abs(x)));
}

}  // namespace onnxtrain::math

#endif  // ONNXTRAIN_RUNTIME_MATH_FUNCTIONS_H_
