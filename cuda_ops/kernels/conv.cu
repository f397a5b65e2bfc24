// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/conv.h"
#include "cuda_ops/kernels/divisor.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"

namespace onnxtrain {
namespace cuda_kernels {

// Indices of an element of a volume [d, h, w].
struct Place {
  int32_t d, h, w;
};

__device__ Place PlaceOf(int64_t index, int32_t height, int32_t width) {
  const auto inner = static_cast<int32_t>(index);
  return {inner / width / height, inner / width % height, inner % width};
}

__device__ bool Inside(const WindowAxis& axis, int32_t at) { return at >= 0 && at < axis.input; }

__global__ void __launch_bounds__(kBlockThreads) ToColumns(ColumnArguments a, Divisor by_output, Divisor by_taps) {
  const DeviceWindow& window = a.window;
  const int64_t total = a.samples * a.channels * window.Taps() * window.OutputSize();
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    int64_t plane = i;
    const Place output = PlaceOf(by_output.Split(&plane), window.height.output, window.width.output);
    const Place tap = PlaceOf(by_taps.Split(&plane), window.height.kernel, window.width.kernel);
    const int32_t d = window.depth.At(output.d, tap.d);
    const int32_t h = window.height.At(output.h, tap.h);
    const int32_t w = window.width.At(output.w, tap.w);
    float value = 0;
    if (Inside(window.depth, d) && Inside(window.height, h) && Inside(window.width, w)) {
      const int64_t at = (int64_t{d} * window.height.input + h) * window.width.input + w;
      value = LoadFloat(a.from, a.from_dtype, plane * window.InputSize() + at);
    }
    StoreFloat(a.to, a.to_dtype, i, value);
  }
}

__global__ void __launch_bounds__(kBlockThreads) FromColumns(ColumnArguments a, Divisor by_input) {
  const DeviceWindow& window = a.window;
  const int64_t total = a.samples * a.channels * window.InputSize();
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    int64_t plane = i;
    const Place pixel = PlaceOf(by_input.Split(&plane), window.height.input, window.width.input);
    float sum = 0;
    int64_t row = plane * window.Taps();
    for (int32_t kd = 0; kd < window.depth.kernel; ++kd) {
      const int32_t d = window.depth.OutputAt(pixel.d, kd);
      for (int32_t kh = 0; kh < window.height.kernel; ++kh) {
        const int32_t h = window.height.OutputAt(pixel.h, kh);
        for (int32_t kw = 0; kw < window.width.kernel; ++kw, ++row) {
          const int32_t w = window.width.OutputAt(pixel.w, kw);
          if (d < 0 || h < 0 || w < 0) continue;
          const int64_t position = (int64_t{d} * window.height.output + h) * window.width.output + w;
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
  return ONNXTRAIN_LAUNCH(cuda_kernels::ToColumns, ElementBlocks(total), kBlockThreads, 0, stream, a,
                          Divisor(a.window.OutputSize()), Divisor(a.window.Taps()));
}

cudaError_t LaunchFromColumns(const ColumnArguments& a, cudaStream_t stream) {
  const int64_t total = a.samples * a.channels * a.window.InputSize();
  if (total == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::FromColumns, ElementBlocks(total), kBlockThreads, 0, stream, a,
                          Divisor(a.window.InputSize()));
}

}  // namespace onnxtrain
