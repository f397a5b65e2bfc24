// SPDX-License-Identifier: Apache-2.0
// The sliding window of convolutions and pools, with everything that attributes may leave open filled in.
#ifndef ONNXTRAIN_GRAPH_OPS_WINDOW_H_
#define ONNXTRAIN_GRAPH_OPS_WINDOW_H_

#include <vector>

#include "graph/attributes.h"
#include "graph/status.h"

namespace onnxtrain {

// One entry per spatial axis.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads_begin;
  std::vector<int64_t> pads_end;

  size_t axes() const { return kernel.size(); }
  // Input positions from the first to behind the last one that a window covers.
  int64_t extent(size_t axis) const { return dilations[axis] * (kernel[axis] - 1) + 1; }
};

// From strides, dilations, pads and auto_pad, for an input of these spatial sizes. SAME_UPPER and SAME_LOWER pad so
// that the output has ceil(input / stride) positions, an odd pad more at the end or at the beginning. Fails on lists of
// another length and on numbers that make no sense.
StatusOr<Window> WindowOf(const Attributes& attributes, const Shape& spatial, std::vector<int64_t> kernel);

// As attributes kernel_shape, strides, dilations and pads.
void SetWindow(const Window& window, Attributes& attributes);

// Sizes behind the first two axes.
Shape SpatialOf(const Shape& shape);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_OPS_WINDOW_H_
