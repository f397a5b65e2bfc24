// SPDX-License-Identifier: Apache-2.0
// A tensor seen as lines along one axis: `count` lines of `length` elements that are `step` apart.
#ifndef ONNXTRAIN_RUNTIME_CPU_KERNELS_AXIS_LINES_H_
#define ONNXTRAIN_RUNTIME_CPU_KERNELS_AXIS_LINES_H_

#include <cstdint>

#include "graph/tensor.h"

namespace onnxtrain {

struct AxisLines {
  int64_t count = 1;
  int64_t length = 1;
  int64_t step = 1;

  AxisLines(const Shape& shape, int64_t axis) {
    const auto rank = static_cast<int64_t>(shape.size());
    if (axis < 0) axis += rank;
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t size = shape[static_cast<size_t>(i)];
      if (i == axis) length = size;
      if (i != axis) count *= size;
      if (i > axis) step *= size;
    }
  }

  // Where line `i` of a tensor of these lines begins; `line_length` where it differs from this tensor's.
  int64_t Start(int64_t i) const { return Start(i, length); }
  int64_t Start(int64_t i, int64_t line_length) const { return i / step * (line_length * step) + i % step; }
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_KERNELS_AXIS_LINES_H_
