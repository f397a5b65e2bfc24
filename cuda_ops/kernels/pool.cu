// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/divisor.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"
#include "cuda_ops/kernels/pool.h"

namespace onnxtrain {
namespace cuda_kernels {

// The place in its plane of the largest element under an output, and its value; -1 where the window covers nothing.
__device__ int64_t LargestOf(const PoolArguments& a, int64_t plane, int32_t d, int32_t h, int32_t w, float* largest) {
  const DeviceWindow& window = a.window;
  int64_t place = -1;
  *largest = -__builtin_huge_valf();
  for (int32_t kd = 0; kd < window.depth.kernel; ++kd) {
    const int32_t at_d = window.depth.At(d, kd);
    if (at_d < 0 || at_d >= window.depth.input) continue;
    for (int32_t kh = 0; kh < window.height.kernel; ++kh) {
      const int32_t at_h = window.height.At(h, kh);
      if (at_h < 0 || at_h >= window.height.input) continue;
      for (int32_t kw = 0; kw < window.width.kernel; ++kw) {
        const int32_t at_w = window.width.At(w, kw);
        if (at_w < 0 || at_w >= window.width.input) continue;
        const int64_t at = (int64_t{at_d} * window.height.input + at_h) * window.width.input + at_w;
        const float value = LoadFloat(a.x, a.dtype, plane * window.InputSize() + at);
        if (place >= 0 && !(value > *largest || value != value)) continue;
        place = at;
        *largest = value;
      }
    }
  }
  return place;
}

__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks) MaxPool(PoolArguments a, Divisor by_output) {
  const DeviceWindow& window = a.window;
  const int64_t total = a.planes * window.OutputSize();
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    int64_t plane = i;
    const auto inner = static_cast<int32_t>(by_output.Split(&plane));
    const int32_t w = inner % window.width.output;
    const int32_t h = inner / window.width.output % window.height.output;
    const int32_t d = inner / window.width.output / window.height.output;
    float largest;
    const int64_t place = LargestOf(a, plane, d, h, w, &largest);
    StoreFloat(a.result, a.dtype, i, largest);
    if (a.indices != nullptr) a.indices[i] = plane * window.InputSize() + place;
  }
}

__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks) MaxPoolGradient(PoolArguments a, Divisor by_input) {
  const DeviceWindow& window = a.window;
  const int64_t total = a.planes * window.InputSize();
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    int64_t plane = i;
    const int64_t place = by_input.Split(&plane);
    const auto inner = static_cast<int32_t>(place);
    const int32_t at_w = inner % window.width.input;
    const int32_t at_h = inner / window.width.input % window.height.input;
    const int32_t at_d = inner / window.width.input / window.height.input;
    float sum = 0;
    for (int32_t kd = 0; kd < window.depth.kernel; ++kd) {
      const int32_t d = window.depth.OutputAt(at_d, kd);
      for (int32_t kh = 0; kh < window.height.kernel; ++kh) {
        const int32_t h = window.height.OutputAt(at_h, kh);
        for (int32_t kw = 0; kw < window.width.kernel; ++kw) {
          const int32_t w = window.width.OutputAt(at_w, kw);
          if (d < 0 || h < 0 || w < 0) continue;
          float largest;
          if (LargestOf(a, plane, d, h, w, &largest) != place) continue;
          const int64_t output = (int64_t{d} * window.height.output + h) * window.width.output + w;
          sum += LoadFloat(a.dy, a.dtype, plane * window.OutputSize() + output);
        }
      }
    }
    StoreFloat(a.result, a.dtype, i, sum);
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchMaxPool(const PoolArguments& a, cudaStream_t stream) {
  const int64_t total = a.planes * a.window.OutputSize();
  if (total == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::MaxPool, ElementBlocks(total), kBlockThreads, 0, stream, a,
                          Divisor(a.window.OutputSize()));
}

cudaError_t LaunchMaxPoolGradient(const PoolArguments& a, cudaStream_t stream) {
  const int64_t total = a.planes * a.window.InputSize();
  if (total == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::MaxPoolGradient, ElementBlocks(total), kBlockThreads, 0, stream, a,
                          Divisor(a.window.InputSize()));
}

}  // namespace onnxtrain
