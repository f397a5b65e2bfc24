// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/conv.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"

namespace onnxtrain {
namespace cuda_kernels {

// Indices of an element of [.., a, b, c], innermost last.
struct Place {
  int64_t outer, d, h, w;
};

__device__ Place PlaceOf(int64_t index, int64_t d, int64_t h, int64_t w) {
  Place place;
  place.w = index % w;
  index /= w;
  place.h = index % h;
  index /= h;
  place.d = index % d;
  place.outer = index / d;
  return place;
}

__device__ bool Inside(const WindowAxis& axis, int64_t at) { return at >= 0 && at < axis.input; }

__global__ void __launch_bounds__(kBlockThreads) ToColumns(ColumnArguments a) {
  const DeviceWindow& window = a.window;
  const int64_t total = a.samples * a.channels * window.Taps() * window.OutputSize();
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    const Place output = PlaceOf(i, window.depth.output, window.height.output, window.width.output);
    const Place tap = PlaceOf(output.outer, window.depth.kernel, window.height.kernel, window.width.kernel);
    const int64_t d = window.depth.At(output.d, tap.d);
    const int64_t h = window.height.At(output.h, tap.h);
    const int64_t w = window.width.At(output.w, tap.w);
    float value = 0;
    if (Inside(window.depth, d) && Inside(window.height, h) && Inside(window.width, w)) {
      const int64_t at = (d * window.height.input + h) * window.width.input + w;
      value = LoadFloat(a.from, a.from_dtype, tap.outer * window.InputSize() + at);
    }
    StoreFloat(a.to, a.to_dtype, i, value);
  }
}

__global__ void __launch_bounds__(kBlockThreads) FromColumns(ColumnArguments a) {
  const DeviceWindow& window = a.window;
  const int64_t total = a.samples * a.channels * window.InputSize();
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    const Place pixel = PlaceOf(i, window.depth.input, window.height.input, window.width.input);
    float sum = 0;
    int64_t row = pixel.outer * window.Taps();
    for (int64_t kd = 0; kd < window.depth.kernel; ++kd) {
      const int64_t d = window.depth.OutputAt(pixel.d, kd);
      for (int64_t kh = 0; kh < window.height.kernel; ++kh) {
        const int64_t h = window.height.OutputAt(pixel.h, kh);
        for (int64_t kw = 0; kw < window.width.kernel; ++kw, ++row) {
          const int64_t w = window.width.OutputAt(pixel.w, kw);
          if (d < 0 || h < 0 || w < 0) continue;
          const int64_t position = (d * window.height.output + h) * window.width.output + w;
          sum += LoadFloat(a.from, a.from_dtype, row * window.OutputSize() + position);
        }
      }
    }
    StoreFloat(a.to, a.to_dtype, i, sum);
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchToColumns(const ColumnArguments& a, cudaStream_t stream) {
  const int64_t total = a.samples * a.channels * a.window.Taps() * a.window.OutputSize();
  if (total == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::ToColumns, ElementBlocks(total), kBlockThreads, 0, stream, a);
}

cudaError_t LaunchFromColumns(const ColumnArguments& a, cudaStream_t stream) {
  const int64_t total = a.samples * a.channels * a.window.InputSize();
  if (total == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::FromColumns, ElementBlocks(total), kBlockThreads, 0, stream, a);
}

}  // namespace onnxtrain
