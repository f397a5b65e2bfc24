// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/divisor.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"
#include "cuda_ops/kernels/pool.h"

namespace onnxtrain {
namespace cuda_kernels {

struct Position {
  int32_t d;
  int32_t h;
  int32_t w;
};
__device__ Position PositionOf(int64_t place, int32_t height, int32_t width) {
  const auto row = static_cast<int32_t>(place) / width;
  return {row / height, row % height, static_cast<int32_t>(place) % width};
}

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
    const Position y = PositionOf(by_output.Split(&plane), window.height.output, window.width.output);
    float largest;
    const int64_t place = LargestOf(a, plane, y.d, y.h, y.w, &largest);
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
    const Position x = PositionOf(place, window.height.input, window.width.input);
    float sum = 0;
    for (int32_t kd = 0; kd < window.depth.kernel; ++kd) {
      const int32_t d = window.depth.OutputAt(x.d, kd);
      for (int32_t kh = 0; kh < window.height.kernel; ++kh) {
        const int32_t h = window.height.OutputAt(x.h, kh);
        for (int32_t kw = 0; kw < window.width.kernel; ++kw) {
          const int32_t w = window.width.OutputAt(x.w, kw);
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

// Elements of an axis that count towards the mean at an output.
__device__ int32_t CountOf(const WindowAxis& axis, int32_t position, int32_t end, bool padding) {
  return axis.Last(position, end) - (padding ? 0 : axis.First(position));
}

__device__ float SumOf(const AveragePoolArguments& a, int64_t plane, Position y) {
  const DeviceWindow& window = a.window;
  const int32_t first_w = window.width.First(y.w);
  const int32_t last_w = window.width.Last(y.w, window.width.input);
  const int32_t first_h = window.height.First(y.h);
  const int32_t last_h = window.height.Last(y.h, window.height.input);
  float sum = 0;
  for (int32_t kd = window.depth.First(y.d); kd < window.depth.Last(y.d, window.depth.input); ++kd) {
    for (int32_t kh = first_h; kh < last_h; ++kh) {
      const int32_t row = window.depth.At(y.d, kd) * window.height.input + window.height.At(y.h, kh);
      const int64_t start = plane * window.InputSize() + int64_t{row} * window.width.input;
      for (int32_t kw = first_w; kw < last_w; ++kw) sum += LoadFloat(a.from, a.dtype, start + window.width.At(y.w, kw));
    }
  }
  return sum;
}

__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    AveragePool(AveragePoolArguments a, Divisor by_output) {
  const DeviceWindow& window = a.window;
  const int64_t total = a.planes * window.OutputSize();
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    int64_t plane = i;
    const Position y = PositionOf(by_output.Split(&plane), window.height.output, window.width.output);
    const float count = static_cast<float>(CountOf(window.depth, y.d, a.counted.depth, a.counted.padding)) *
                        static_cast<float>(CountOf(window.height, y.h, a.counted.height, a.counted.padding)) *
                        static_cast<float>(CountOf(window.width, y.w, a.counted.width, a.counted.padding));
    StoreFloat(a.to, a.dtype, i, SumOf(a, plane, y) / count);
  }
}

// The share of one element in the mean at an output along an axis, 0 where its window has no such offset.
__device__ float ShareOf(const WindowAxis& axis, int32_t position, int32_t end, bool padding) {
  return position < 0 ? 0.0f : 1.0f / static_cast<float>(CountOf(axis, position, end, padding));
}

__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    AveragePoolGradient(AveragePoolArguments a, Divisor by_input) {
  const DeviceWindow& window = a.window;
  const int64_t total = a.planes * window.InputSize();
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    int64_t plane = i;
    const Position x = PositionOf(by_input.Split(&plane), window.height.input, window.width.input);
    float sum = 0;
    for (int32_t kd = 0; kd < window.depth.kernel; ++kd) {
      const int32_t d = window.depth.OutputAt(x.d, kd);
      const float share_d = ShareOf(window.depth, d, a.counted.depth, a.counted.padding);
      for (int32_t kh = 0; d >= 0 && kh < window.height.kernel; ++kh) {
        const int32_t h = window.height.OutputAt(x.h, kh);
        const float share_h = share_d * ShareOf(window.height, h, a.counted.height, a.counted.padding);
        const int64_t start =
            plane * window.OutputSize() + (int64_t{d} * window.height.output + h) * window.width.output;
        for (int32_t kw = 0; h >= 0 && kw < window.width.kernel; ++kw) {
          const int32_t w = window.width.OutputAt(x.w, kw);
          if (w < 0) continue;
          const float share = share_h * ShareOf(window.width, w, a.counted.width, a.counted.padding);
          sum += share * LoadFloat(a.from, a.dtype, start + w);
        }
      }
    }
    StoreFloat(a.to, a.dtype, i, sum);
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

cudaError_t LaunchAveragePool(const AveragePoolArguments& a, cudaStream_t stream) {
  const int64_t total = a.planes * a.window.OutputSize();
  if (total == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::AveragePool, ElementBlocks(total), kBlockThreads, 0, stream, a,
                          Divisor(a.window.OutputSize()));
}

cudaError_t LaunchAveragePoolGradient(const AveragePoolArguments& a, cudaStream_t stream) {
  const int64_t total = a.planes * a.window.InputSize();
  if (total == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::AveragePoolGradient, ElementBlocks(total), kBlockThreads, 0, stream, a,
                          Divisor(a.window.InputSize()));
}

}  // namespace onnxtrain
