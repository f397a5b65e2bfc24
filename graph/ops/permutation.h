// SPDX-License-Identifier: Apache-2.0
// The permutation of a Transpose node, as its gradient and its kernels read it.
#ifndef ONNXTRAIN_GRAPH_OPS_PERMUTATION_H_
#define ONNXTRAIN_GRAPH_OPS_PERMUTATION_H_

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace onnxtrain {

// Axis i of the output is axis permutation[i] of the input; reversed by default.
std::vector<int64_t> PermutationOf(const Node& transpose);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_OPS_PERMUTATION_H_
