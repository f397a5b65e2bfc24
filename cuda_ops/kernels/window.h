// SPDX-License-Identifier: Apache-2.0
// The window of a convolution or pool over planes [d, h, w], for host and device: missing axes in front have one
// position. In 32 bits, since GPUs divide those several times faster.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_WINDOW_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_WINDOW_H_

#include <cstdint>

#include "runtime/math/host_device.h"

namespace onnxtrain {

struct WindowAxis {
  int32_t input = 1;
  int32_t output = 1;
  int32_t kernel = 1;
  int32_t stride = 1;
  int32_t dilation = 1;
  int32_t pad = 0;  // at the begin

  // Input position under `offset` of the window of an output; may lie outside.
  ONNXTRAIN_HOST_DEVICE inline int32_t At(int32_t position, int32_t offset) const {
    return position * stride - pad + offset * dilation;
  }
  // Offsets of the window of an output from the begin of the input on, and before `end`: First <= offset < Last.
  ONNXTRAIN_HOST_DEVICE inline int32_t First(int32_t position) const {
    const int32_t start = At(position, 0);
    return start >= 0 ? 0 : (dilation - 1 - start) / dilation;
  }
  ONNXTRAIN_HOST_DEVICE inline int32_t Last(int32_t position, int32_t end) const {
    const int32_t room = end - At(position, 0);
    if (room <= 0) return 0;
    const int32_t reached = (room + dilation - 1) / dilation;
    return reached < kernel ? reached : kernel;
  }
  // The output whose window has `offset` over an input, or -1.
  ONNXTRAIN_HOST_DEVICE inline int32_t OutputAt(int32_t input_position, int32_t offset) const {
    const int32_t distance = input_position + pad - offset * dilation;
    if (distance < 0 || distance % stride != 0) return -1;
    const int32_t position = distance / stride;
    return position < output ? position : -1;
  }
};

struct DeviceWindow {
  WindowAxis depth;
  WindowAxis height;
  WindowAxis width;

  ONNXTRAIN_HOST_DEVICE inline int64_t InputSize() const { return int64_t{depth.input} * height.input * width.input; }
  ONNXTRAIN_HOST_DEVICE inline int64_t OutputSize() const {
    return int64_t{depth.output} * height.output * width.output;
  }
  ONNXTRAIN_HOST_DEVICE inline int64_t Taps() const { return int64_t{depth.kernel} * height.kernel * width.kernel; }
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_WINDOW_H_
