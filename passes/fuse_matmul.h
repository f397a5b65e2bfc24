// SPDX-License-Identifier: Apache-2.0
// Takes transposes, constant factors and biases around a matrix product into it.
//
// Before:  t = Transpose(w);  p = MatMul(x, t);  y = Add(p, b)           (how exporters write a linear layer)
// After:   y = onnxtrain.MatMul <perm_b = [1, 0]> (x, w, b)              (Gemm where x has two axes)
//
// Before:  a = Transpose <perm = [0, 2, 1, 3]> (q);  b = Transpose <perm = [0, 2, 3, 1]> (k)
//          s = MatMul(a, b);  y = Mul(s, 0.125)                          (scores of attention)
// After:   y = onnxtrain.MatMul <alpha = 0.125, perm_a = ..., perm_b = ...> (q, k)
//
// A transpose is taken in where each matrix keeps unit stride along rows or columns; transposes of operands also when
// others read them, everything else only when the product alone does. A factor is one constant float. Results are those
// of the separate nodes up to rounding. It runs before build_backward: gradients of the product need no copies either.
#ifndef ONNXTRAIN_PASSES_FUSE_MATMUL_H_
#define ONNXTRAIN_PASSES_FUSE_MATMUL_H_

#include <memory>

#include "passes/pass.h"

namespace onnxtrain {

std::unique_ptr<Pass> FuseMatMul();

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_FUSE_MATMUL_H_
