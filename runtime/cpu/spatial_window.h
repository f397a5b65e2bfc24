// SPDX-License-Identifier: Apache-2.0
// The window of a pool or convolution over planes [d, h, w]: every number of spatial axes up to three, missing ones in
// front having one position.
#ifndef ONNXTRAIN_RUNTIME_CPU_SPATIAL_WINDOW_H_
#define ONNXTRAIN_RUNTIME_CPU_SPATIAL_WINDOW_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "graph/ops/window.h"
#include "graph/status.h"

namespace onnxtrain {

class SpatialWindow {
 public:
  struct Axis {
    int64_t input = 1, output = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;

    // Offsets of the window of `position` that lie inside of the input: first <= offset < last.
    int64_t first(int64_t position) const {
      const int64_t start = position * stride - pad_begin;
      return start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    }
    int64_t last(int64_t position) const {
      const int64_t room = input - (position * stride - pad_begin);
      return room <= 0 ? 0 : std::min(kernel, (room + dilation - 1) / dilation);
    }
    // Offsets that lie inside of the padded input.
    int64_t padded(int64_t position) const {
      const int64_t room = input + pad_end - (position * stride - pad_begin);
      return room <= 0 ? 0 : std::min(kernel, (room + dilation - 1) / dilation);
    }
    int64_t at(int64_t position, int64_t offset) const { return position * stride - pad_begin + offset * dilation; }
    // Outputs whose window has `offset` inside of the input: first_output <= position < last_output.
    int64_t first_output(int64_t offset) const {
      const int64_t start = pad_begin - offset * dilation;
      return start <= 0 ? 0 : std::min(output, (start + stride - 1) / stride);
    }
    int64_t last_output(int64_t offset) const {
      const int64_t room = input + pad_begin - offset * dilation;
      return room <= 0 ? 0 : std::min(output, (room + stride - 1) / stride);
    }
  };

  // `input` and `output` are the spatial sizes.
  static StatusOr<SpatialWindow> Make(const Window& window, const Shape& input, const Shape& output) {
    const size_t axes = window.axes();
    if (axes == 0 || axes > 3) {
      return InvalidModelError("windows have one to three spatial axes, not " + std::to_string(axes));
    }
    SpatialWindow made;
    for (size_t i = 0; i < axes; ++i) {
      made.axes_[3 - axes + i] = {input[i],          output[i],           window.kernel[i],
                                  window.strides[i], window.dilations[i], window.pads_begin[i],
                                  window.pads_end[i]};
    }
    return made;
  }

  const Axis& axis(size_t index) const { return axes_[index]; }
  int64_t input_size() const { return axes_[0].input * axes_[1].input * axes_[2].input; }
  int64_t output_size() const { return axes_[0].output * axes_[1].output * axes_[2].output; }
  int64_t window_size() const { return axes_[0].kernel * axes_[1].kernel * axes_[2].kernel; }

 private:
  std::array<Axis, 3> axes_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_SPATIAL_WINDOW_H_
