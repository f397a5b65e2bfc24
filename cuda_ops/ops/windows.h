// SPDX-License-Identifier: Apache-2.0
// Windows of nodes as device code takes them.
#ifndef ONNXTRAIN_CUDA_OPS_OPS_WINDOWS_H_
#define ONNXTRAIN_CUDA_OPS_OPS_WINDOWS_H_

#include "cuda_ops/kernels/window.h"
#include "graph/ops/window.h"
#include "graph/status.h"

namespace onnxtrain {

// Planes and windows are counted in 32 bits.
inline Status CheckWindowFits(const Window& window, const Shape& input, const Shape& output) {
  constexpr int64_t kMost = int64_t{1} << 30;
  bool fits = ElementsOf(input) < kMost && ElementsOf(output) < kMost;
  for (size_t i = 0; i < window.axes(); ++i) {
    fits = fits && window.kernel[i] < kMost && window.strides[i] < kMost && window.dilations[i] < kMost &&
           window.pads_begin[i] < kMost && window.pads_end[i] < kMost &&
           input[i] + window.pads_begin[i] + window.pads_end[i] < kMost &&
           window.dilations[i] * (window.kernel[i] - 1) < kMost && window.strides[i] * output[i] < kMost;
  }
  if (fits) return OkStatus();
  return InvalidModelError("the CUDA kernels walk planes of less than 2^30 elements, their windows included");
}

// `input` and `output` are the spatial sizes, one to three of them.
inline StatusOr<DeviceWindow> DeviceWindowOf(const Window& window, const Shape& input, const Shape& output) {
  const size_t axes = window.axes();
  if (axes == 0 || axes > 3) {
    return InvalidModelError("windows have one to three spatial axes, not " + std::to_string(axes));
  }
  RETURN_IF_ERROR(CheckWindowFits(window, input, output));
  const auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
  DeviceWindow made;
  WindowAxis* const all[] = {&made.depth, &made.height, &made.width};
  for (size_t i = 0; i < axes; ++i) {
    *all[3 - axes + i] = {narrow(input[i]),          narrow(output[i]),           narrow(window.kernel[i]),
                          narrow(window.strides[i]), narrow(window.dilations[i]), narrow(window.pads_begin[i])};
  }
  return made;
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_OPS_WINDOWS_H_
