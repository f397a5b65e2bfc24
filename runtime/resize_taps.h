// SPDX-License-Identifier: Apache-2.0
// Which elements of an axis an interpolated one is made of, by the definitions of ONNX's Resize (opset 19 and later).
#ifndef ONNXTRAIN_RUNTIME_RESIZE_TAPS_H_
#define ONNXTRAIN_RUNTIME_RESIZE_TAPS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "graph/status.h"

namespace onnxtrain {

// A sparse matrix by rows: element j of the result is the sum of weight[t] * element index[t] for t in begin[j] ..
// begin[j+1]-1.
struct AxisTaps {
  size_t axis = 0;
  int64_t from = 0;  // sizes of the axis
  int64_t to = 0;
  std::vector<int64_t> begin;
  std::vector<int64_t> index;
  std::vector<double> weight;

  // The same numbers by columns: what the gradient needs.
  AxisTaps Transposed() const;
};

// What the kernels of every backend apply, one entry per axis that is not simply copied; none where there is nothing to
// read or to write. Fails on modes that are not served (tf_crop_and_resize) or not defined, and on scales that are not
// constant.
StatusOr<std::vector<AxisTaps>> ResizeTapsOf(const Node& resize);
// From dy to dx: the transposed matrices, in the opposite order.
StatusOr<std::vector<AxisTaps>> ResizeGradTapsOf(const Node& resize_grad);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_RESIZE_TAPS_H_
