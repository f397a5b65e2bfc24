// SPDX-License-Identifier: Apache-2.0
// Windows of nodes as device code takes them.
#ifndef ONNXTRAIN_CUDA_OPS_OPS_WINDOWS_H_
#define ONNXTRAIN_CUDA_OPS_OPS_WINDOWS_H_

#include "cuda_ops/kernels/window.h"
#include "graph/ops/window.h"
#include "graph/status.h"

namespace onnxtrain {

// `input` and `output` are the spatial sizes, one to three of them.
inline StatusOr<DeviceWindow> DeviceWindowOf(const Window& window, const Shape& input, const Shape& output) {
  const size_t axes = window.axes();
  if (axes == 0 || axes > 3) {
    return InvalidModelError("windows have one to three spatial axes, not " + std::to_string(axes));
  }
  DeviceWindow made;
  WindowAxis* const all[] = {&made.depth, &made.height, &made.width};
  for (size_t i = 0; i < axes; ++i) {
    *all[3 - axes + i] = {input[i],          output[i],           window.kernel[i],
                          window.strides[i], window.dilations[i], window.pads_begin[i]};
  }
  return made;
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_OPS_WINDOWS_H_
