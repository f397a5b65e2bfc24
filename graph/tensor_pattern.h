// SPDX-License-Identifier: Apache-2.0
// Contents that a module computes once and never learns, told apart from weights by their values alone.
#ifndef ONNXTRAIN_GRAPH_TENSOR_PATTERN_H_
#define ONNXTRAIN_GRAPH_TENSOR_PATTERN_H_

#include "graph/tensor.h"

namespace onnxtrain {

// Rank 2 or more, square in its last two axes, with both of two values: 0 and 1, or 0 and one at or below -1e4 (minus
// infinity included). Causal masks are such.
bool LooksLikeMask(const Tensor& tensor);

// [positions, width] (after leading axes of 1) with sin(p * f) and cos(p * f) for even many columns, either in two
// halves or in turn: Vaswani et al., 2017, section 3.5.
bool LooksLikeSinusoids(const Tensor& tensor);

// All elements are the same; true for at most one.
bool IsUniform(const Tensor& tensor);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_TENSOR_PATTERN_H_
