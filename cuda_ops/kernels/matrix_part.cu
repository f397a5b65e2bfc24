// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/divisor.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"
#include "cuda_ops/kernels/matrix_part.h"

namespace onnxtrain {
namespace cuda_kernels {

template <typename Bits>
__global__ void __launch_bounds__(kBlockThreads) Triangle(TriangleArguments a, Divisor by_width, Divisor by_height) {
  const int64_t diagonal = a.diagonal == nullptr ? 0 : *a.diagonal;
  for (int64_t i = FirstElement(); i < a.count; i += ElementStride()) {
    int64_t matrix = i;
    const int64_t column = by_width.Split(&matrix);
    const int64_t beyond = column - by_height.Split(&matrix) - diagonal;
    const bool kept = a.upper ? beyond >= 0 : beyond <= 0;
    static_cast<Bits*>(a.y)[i] = kept ? static_cast<const Bits*>(a.x)[i] : Bits(0);
  }
}

template <typename Bits>
__global__ void __launch_bounds__(kBlockThreads)
    Eye(Bits* y, int64_t count, Divisor by_width, int64_t diagonal, Bits one) {
  for (int64_t i = FirstElement(); i < count; i += ElementStride()) {
    int64_t row = i;
    const int64_t column = by_width.Split(&row);
    y[i] = column - row == diagonal ? one : Bits(0);
  }
}

// Integers wrap around, hence unsigned.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads) Range(const T* start, const T* delta, T* y, int64_t count) {
  for (int64_t i = FirstElement(); i < count; i += ElementStride()) {
    y[i] = *start + static_cast<T>(i) * *delta;
  }
}

template <typename Bits>
cudaError_t LaunchTriangleOf(const TriangleArguments& a, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(Triangle<Bits>, ElementBlocks(a.count), kBlockThreads, 0, stream, a, Divisor(a.width),
                          Divisor(a.height));
}

template <typename Bits>
cudaError_t LaunchEyeOf(void* y, int64_t height, int64_t width, int64_t diagonal, uint64_t one, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(Eye<Bits>, ElementBlocks(height * width), kBlockThreads, 0, stream, static_cast<Bits*>(y),
                          height * width, Divisor(width), diagonal, static_cast<Bits>(one));
}

template <typename T>
cudaError_t LaunchRangeOf(const void* start, const void* delta, void* y, int64_t count, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(Range<T>, ElementBlocks(count), kBlockThreads, 0, stream, static_cast<const T*>(start),
                          static_cast<const T*>(delta), static_cast<T*>(y), count);
}

}  // namespace cuda_kernels

cudaError_t LaunchTriangle(const TriangleArguments& a, size_t element_bytes, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  switch (element_bytes) {
    case 1:
      return cuda_kernels::LaunchTriangleOf<uint8_t>(a, stream);
    case 2:
      return cuda_kernels::LaunchTriangleOf<uint16_t>(a, stream);
    case 4:
      return cuda_kernels::LaunchTriangleOf<uint32_t>(a, stream);
    case 8:
      return cuda_kernels::LaunchTriangleOf<uint64_t>(a, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t LaunchEye(void* y, int64_t height, int64_t width, int64_t diagonal, uint64_t one, size_t element_bytes,
                      cudaStream_t stream) {
  if (height * width == 0) return cudaSuccess;
  switch (element_bytes) {
    case 1:
      return cuda_kernels::LaunchEyeOf<uint8_t>(y, height, width, diagonal, one, stream);
    case 2:
      return cuda_kernels::LaunchEyeOf<uint16_t>(y, height, width, diagonal, one, stream);
    case 4:
      return cuda_kernels::LaunchEyeOf<uint32_t>(y, height, width, diagonal, one, stream);
    case 8:
      return cuda_kernels::LaunchEyeOf<uint64_t>(y, height, width, diagonal, one, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t LaunchRange(const void* start, const void* delta, void* y, int64_t count, DType dtype,
                        cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  switch (dtype) {
    case DType::kFloat:
      return cuda_kernels::LaunchRangeOf<float>(start, delta, y, count, stream);
    case DType::kDouble:
      return cuda_kernels::LaunchRangeOf<double>(start, delta, y, count, stream);
    case DType::kInt32:
      return cuda_kernels::LaunchRangeOf<uint32_t>(start, delta, y, count, stream);
    case DType::kInt64:
      return cuda_kernels::LaunchRangeOf<uint64_t>(start, delta, y, count, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace onnxtrain
