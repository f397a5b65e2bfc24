// SPDX-License-Identifier: Apache-2.0
// Which elements of an axis an interpolated one is made of, by the definitions of ONNX's Resize (opset 19 and later).
#ifndef ONNXTRAIN_RUNTIME_CPU_KERNELS_RESIZE_TAPS_H_
#define ONNXTRAIN_RUNTIME_CPU_KERNELS_RESIZE_TAPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/attributes.h"
#include "graph/tensor.h"

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

// One entry per axis that is not simply copied. `scales` as given (by axis of the attribute `axes`), empty where sizes
// decide. Fails on modes that are not served (tf_crop_and_resize) or not defined.
StatusOr<std::vector<AxisTaps>> ResizeTaps(const Attributes& attributes, const Shape& from, const Shape& to,
                                           const std::vector<double>& scales);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_KERNELS_RESIZE_TAPS_H_
