// SPDX-License-Identifier: Apache-2.0
// exp without branches or library calls, so that loops over it become vector code.
//
// float: x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial of degree 7, whose remainder is below 1e-8
// of e^r there; within 1 unit in the last place of the exact value, 0 below the smallest normal number, infinity above
// the largest. NaN stays NaN. double: the library's.
#ifndef ONNXTRAIN_RUNTIME_MATH_EXPONENTIAL_H_
#define ONNXTRAIN_RUNTIME_MATH_EXPONENTIAL_H_

#include <cmath>
#include <cstdint>

#include "runtime/math/host_device.h"

namespace onnxtrain::math {

ONNXTRAIN_HOST_DEVICE inline float Exp(float x) {
#ifdef __CUDA_ARCH__
  return expf(x);
#else
  constexpr float kRounding = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  constexpr float kLargest = 88.722839f, kSmallest = -87.336544f;
  const float inside = x > kLargest ? kLargest : x < kSmallest ? kSmallest : x;
  const float shifted = inside * 1.44269504f + kRounding;
  const float n = shifted - kRounding;
  const float r = (inside - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.98412698e-4f;
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  // 2^n in two factors, since n may be 128.
  const int32_t exponent = static_cast<int32_t>(__builtin_bit_cast(uint32_t, shifted) - 0x4b400000u);
  const int32_t half = exponent >> 1;
  const float scaled =
      p * __builtin_bit_cast(float, (half + 127) << 23) * __builtin_bit_cast(float, (exponent - half + 127) << 23);
  return x > kLargest ? __builtin_inff() : x < kSmallest ? 0.0f : scaled;
#endif
}

ONNXTRAIN_HOST_DEVICE inline double Exp(double x) { return ::exp(x); }

}  // namespace onnxtrain::math

#endif  // ONNXTRAIN_RUNTIME_MATH_EXPONENTIAL_H_
