// SPDX-License-Identifier: Apache-2.0
// Elementary functions of one number, free of branches, so that loops over them become vector code.
//
// float: own polynomials, within 2 units in the last place of the exact value where it is a normal number (tests/ops
// measures them); their coefficients are Chebyshev fits on the intervals that stand beside them. double: the C library.
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
// The magnitude of `x` with the sign of `sign`.
ONNXTRAIN_HOST_DEVICE inline float CopySign(float x, float sign) {
  return FloatOf((BitsOf(x) & 0x7fffffff) | (BitsOf(sign) & INT32_MIN));
}
ONNXTRAIN_HOST_DEVICE inline double CopySign(double x, double sign) { return ::copysign(x, sign); }
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

// |x| < 1: x + x P(x^2). Otherwise 1 - exp(-Q(|x|)), Q = -log erfc, fitted on [1, 4]; 1 beyond in single precision.
ONNXTRAIN_HOST_DEVICE inline float Erf(float x) {
  const float a = Abs(x);
  const float z = x * x;
  const float p =
      (((((7.875875063e-5f * z - 0.0008016864287f) * z + 0.005189087423f) * z - 0.02685421201f) * z + 0.1128359472f) *
           z -
       0.3761262667f) *
          z +
      0.1283791658f;
  const float near = p * x + x;
  const float t = Select(a > 4.0f, 4.0f, a);
  const float q = (((((((-1.637151415e-6f * t + 4.605804269e-5f) * t - 0.0005968056257f) * t + 0.004759596293f) * t -
                      0.02642113601f) *
                         t +
                     0.1100800829f) *
                        t +
                    0.6318260516f) *
                       t +
                   1.130233435f) *
                      t -
                  0.0003201380497f;
  const float far = CopySign(1.0f - Exp(-q), x);
  return Select(a < 1.0f, near, far);
}
ONNXTRAIN_HOST_DEVICE inline double Erf(double x) { return ::erf(x); }

// |x| < 0.625: x + x^3 P(x^2). Otherwise 1 - 2 / (e^{2|x|} + 1).
ONNXTRAIN_HOST_DEVICE inline float Tanh(float x) {
  const float a = Abs(x);
  const float z = x * x;
  const float p =
      (((-0.006096714166f * z + 0.020997179f) * z - 0.05385090958f) * z + 0.1333276974f) * z - 0.3333332894f;
  const float near = p * z * x + x;
  const float far = CopySign(1.0f - 2.0f / (Exp(2.0f * a) + 1.0f), x);
  return Select(a < 0.625f, near, far);
}
ONNXTRAIN_HOST_DEVICE inline double Tanh(double x) { return ::tanh(x); }

// 1 / (1 + e^-x), through e^-|x| so that small results keep their precision.
template <typename T>
ONNXTRAIN_HOST_DEVICE inline T Sigmoid(T x) {
  const T e = Exp(-Abs(x));
  return Select(x >= T(0), T(1), e) / (T(1) + e);
}

// log(1 + e^x)
template <typename T>
ONNXTRAIN_HOST_DEVICE inline T Softplus(T x) {
  return Select(x > T(0), x, T(0)) + Log1p(Exp(-Abs(x)));
}

}  // namespace onnxtrain::math

#endif  // ONNXTRAIN_RUNTIME_MATH_FUNCTIONS_H_
