// SPDX-License-Identifier: Apache-2.0
// The axes of a canonical Reduce* node, as its gradient and its kernels read them.
#ifndef ONNXTRAIN_GRAPH_OPS_REDUCTION_AXES_H_
#define ONNXTRAIN_GRAPH_OPS_REDUCTION_AXES_H_

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace onnxtrain {

// Ascending, not negative, without repeats. Fails when they are not constant or out of range.
StatusOr<std::vector<int64_t>> ReducedAxes(const Node& node);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_OPS_REDUCTION_AXES_H_
