// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/clip.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"

namespace onnxtrain {
namespace cuda_kernels {

__device__ float BoundOr(const void* bound, DType dtype, float otherwise) {
  return bound == nullptr ? otherwise : LoadFloat(bound, dtype, 0);
}

__global__ void __launch_bounds__(kBlockThreads) Clip(ClipArguments a) {
  const float lower = BoundOr(a.lower, a.dtype, -__builtin_huge_valf());
  const float upper = BoundOr(a.upper, a.dtype, __builtin_huge_valf());
  for (int64_t i = FirstElement(); i < a.count; i += ElementStride()) {
    const float x = LoadFloat(a.x, a.dtype, i);
    const float raised = x < lower ? lower : x;  // NaN passes
    StoreFloat(a.y, a.dtype, i, raised > upper ? upper : raised);
  }
}

__global__ void __launch_bounds__(kBlockThreads) ClipGradient(ClipArguments a) {
  const float lower = BoundOr(a.lower, a.dtype, -__builtin_huge_valf());
  const float upper = BoundOr(a.upper, a.dtype, __builtin_huge_valf());
  for (int64_t i = FirstElement(); i < a.count; i += ElementStride()) {
    const float x = LoadFloat(a.x, a.dtype, i);
    const float dy = LoadFloat(a.dy, a.dtype, i);
    StoreFloat(a.y, a.dtype, i, x <= lower || x >= upper ? 0.0f : dy);
  }
}

__global__ void __launch_bounds__(kBlockThreads) IsNaN(const void* x, DType dtype, bool* y, int64_t count) {
  for (int64_t i = FirstElement(); i < count; i += ElementStride()) {
    const float value = LoadFloat(x, dtype, i);
    y[i] = value != value;
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    IsInfinite(const void* x, DType dtype, bool positive, bool negative, bool* y, int64_t count) {
  const float infinity = __builtin_huge_valf();
  for (int64_t i = FirstElement(); i < count; i += ElementStride()) {
    const float value = LoadFloat(x, dtype, i);
    y[i] = (positive && value == infinity) || (negative && value == -infinity);
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchClip(const ClipArguments& a, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::Clip, ElementBlocks(a.count), kBlockThreads, 0, stream, a);
}

cudaError_t LaunchClipGradient(const ClipArguments& a, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::ClipGradient, ElementBlocks(a.count), kBlockThreads, 0, stream, a);
}

cudaError_t LaunchIsNaN(const void* x, DType dtype, bool* y, int64_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::IsNaN, ElementBlocks(count), kBlockThreads, 0, stream, x, dtype, y, count);
}

cudaError_t LaunchIsInfinite(const void* x, DType dtype, bool positive, bool negative, bool* y, int64_t count,
                             cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::IsInfinite, ElementBlocks(count), kBlockThreads, 0, stream, x, dtype, positive,
                          negative, y, count);
}

}  // namespace onnxtrain
