// SPDX-License-Identifier: Apache-2.0
// Binary cross entropy of a logit x against a target t in [0, 1], stable for every x (the form of PyTorch's
// binary_cross_entropy_with_logits).
#ifndef ONNXTRAIN_RUNTIME_MATH_BINARY_CROSS_ENTROPY_H_
#define ONNXTRAIN_RUNTIME_MATH_BINARY_CROSS_ENTROPY_H_

#include <cmath>

#include "runtime/math/host_device.h"

namespace onnxtrain::math {

template <typename T>
ONNXTRAIN_HOST_DEVICE inline T BinaryCrossEntropy(T x, T target) {
  const T rest = std::log1p(std::exp(-std::fabs(x)));
  return (x > 0 ? x - x * target : -(x * target)) + rest;
}

// d/dx = sigmoid(x) - t
template <typename T>
ONNXTRAIN_HOST_DEVICE inline T BinaryCrossEntropyGradient(T x, T target) {
  const T e = std::exp(-std::fabs(x));
  return (x >= 0 ? 1 / (1 + e) : e / (1 + e)) - target;
}

}  // namespace onnxtrain::math

#endif  // ONNXTRAIN_RUNTIME_MATH_BINARY_CROSS_ENTROPY_H_
