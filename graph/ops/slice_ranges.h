// SPDX-License-Identifier: Apache-2.0
// The parts that a Split node makes, and what a Slice node takes from each axis, after defaults, negative indices and
// clamping.
#ifndef ONNXTRAIN_GRAPH_OPS_SLICE_RANGES_H_
#define ONNXTRAIN_GRAPH_OPS_SLICE_RANGES_H_

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace onnxtrain {

// One entry per axis of the data: elements start, start + step, ..., `length` of them.
struct SliceRanges {
  std::vector<int64_t> starts;
  std::vector<int64_t> steps;
  std::vector<int64_t> lengths;
};

// Of a canonical Slice node. Fails when starts, ends, axes or steps are not constant or do not fit.
StatusOr<SliceRanges> SliceRangesOf(const Node& slice);
// The type of every part of a canonical Split node, also of those that are omitted outputs.
StatusOr<std::vector<TensorType>> SplitTypes(const Node& split);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_OPS_SLICE_RANGES_H_
