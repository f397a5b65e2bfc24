// SPDX-License-Identifier: Apache-2.0
// The functions of one number that backends have loops or kernels for. What each computes: activation.h and functions.h.
#ifndef ONNXTRAIN_RUNTIME_MATH_UNARY_FUNCTION_H_
#define ONNXTRAIN_RUNTIME_MATH_UNARY_FUNCTION_H_

#include <cstdint>

namespace onnxtrain {

enum class UnaryFunction : uint8_t {
  // With a gradient loop.
  kRelu,
  kSigmoid,
  kTanh,
  kErf,
  kGeluErf,
  kGeluTanh,
  kLeakyRelu,
  kElu,
  kSelu,
  kCelu,
  kHardSigmoid,
  kHardSwish,
  kSoftplus,
  kSoftsign,
  kMish,
  kSwish,
  kThresholdedRelu,
  // Without: their gradients are ordinary nodes.
  kExp,
  kLog,
  kSqrt,
  kReciprocal,
  kNeg,
  kAbs,
  kSign,
  kFloor,
  kCeil,
  kRound,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_MATH_UNARY_FUNCTION_H_
