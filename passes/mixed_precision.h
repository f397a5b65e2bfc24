// SPDX-License-Identifier: Apache-2.0
// Computes matrix products, convolutions and activations in 16 bits; parameters stay what they are.
//
// Before:  h = MatMul(x, w);  a = Add(h, b);  n = LayerNormalization(a, scale, bias);  y = MatMul(n, v)
// After:   x_half = Cast(x);  w_half = Cast(w);  h_half = MatMul(x_half, w_half)
//          b_half = Cast(b);  a_half = Add(h_half, b_half);  a = Cast(a_half)
//          n = LayerNormalization(a, scale, bias)
//          n_half = Cast(n);  v_half = Cast(v);  y_half = MatMul(n_half, v_half);  y = Cast(y_half)
//
// The parameters of the program are the masters: float, updated in float, with moments in float. build_backward, which
// comes after, turns each Cast around, so that the gradient of a parameter is float again; gradients inside run in the
// type of their forward values. precision_classes.h lists the operators and docs/mixed_precision.md explains them:
// - a value is computed in 16 bits when an operator of class half wrote it, or one of class follow or move whose
//   floating inputs are all computed in 16 bits, parameters, constants or inputs, with at least one of the first kind;
//   a row that Gather looks up in a parameter counts as well
// - an input computed in float makes a node of class follow run in float: an attention mask that the model computes
//   keeps its float infinities
// - a constant beyond the largest 16-bit number becomes that number
// A value is cast once, however many read it. Outputs and roles keep their type.
#ifndef ONNXTRAIN_PASSES_MIXED_PRECISION_H_
#define ONNXTRAIN_PASSES_MIXED_PRECISION_H_

#include <memory>

#include "graph/dtype.h"
#include "passes/pass.h"

namespace onnxtrain {

struct MixedPrecisionOptions {
  // kBfloat16, or kFloat, which changes nothing. kFloat16 needs a loss scale and is refused with Usage.
  DType compute = DType::kBfloat16;
};

// Rewrites every graph of the program. Fails with InvalidModel when a graph has gradients already.
std::unique_ptr<Pass> MixedPrecision(const MixedPrecisionOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_MIXED_PRECISION_H_
