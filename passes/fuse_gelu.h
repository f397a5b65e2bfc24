// SPDX-License-Identifier: Apache-2.0
// Makes one Gelu of the products and sums that exporters write for it.
//
// Before:  a = Div(x, 1.41421356);  b = Erf(a);  c = Add(b, 1);  d = Mul(x, c);  y = Mul(d, 0.5)
// After:   y = Gelu(x)
//
// Before:  y = 0.5 x (1 + Tanh(0.79788456 (x + 0.044715 x^3))), in any order and grouping, powers as Pow or products
// After:   y = Gelu <approximate = "tanh"> (x)
//
// Constants may be off by 1e-6 of their value. What other nodes read stays; a pattern whose sum 1 + ... has other
// readers is left alone. It runs before fuse_matmul, which would take the factor 0.5 into the product that follows.
#ifndef ONNXTRAIN_PASSES_FUSE_GELU_H_
#define ONNXTRAIN_PASSES_FUSE_GELU_H_

#include <memory>

#include "passes/pass.h"

namespace onnxtrain {

std::unique_ptr<Pass> FuseGelu();

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_FUSE_GELU_H_
