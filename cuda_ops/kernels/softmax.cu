// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/row_reduce.h"
#include "cuda_ops/kernels/softmax.h"
#include "runtime/math/exponential.h"
#include "runtime/math/functions.h"

namespace onnxtrain {
namespace cuda_kernels {

__device__ int64_t RowStart(const SoftmaxArguments& a, int64_t row) {
  return row / a.inner * a.length * a.inner + row % a.inner;
}

template <typename Team>
__global__ void __launch_bounds__(kBlockThreads) Softmax(SoftmaxArguments a) {
  for (int64_t row = Team::FirstRow(); row < a.outer * a.inner; row += Team::RowStride()) {
    const int64_t start = RowStart(a, row);
    float largest = Greater::Neutral<float>();
    for (int64_t i = Team::Thread(); i < a.length; i += blockDim.x / Team::kRowsPerBlock) {
      largest = Greater::Of(largest, LoadFloat(a.x, a.dtype, start + i * a.inner));
    }
    largest = Team::template Reduce<Greater>(largest);
    float sum = 0;
    for (int64_t i = Team::Thread(); i < a.length; i += blockDim.x / Team::kRowsPerBlock) {
      sum += math::Exp(LoadFloat(a.x, a.dtype, start + i * a.inner) - largest);
    }
    sum = Team::template Reduce<Plus>(sum);
    const float log_sum = math::Log(sum);
    for (int64_t i = Team::Thread(); i < a.length; i += blockDim.x / Team::kRowsPerBlock) {
      const int64_t at = start + i * a.inner;
      const float shifted = LoadFloat(a.x, a.dtype, at) - largest;
      StoreFloat(a.result, a.dtype, at, a.kind == SoftmaxKind::kSoftmax ? math::Exp(shifted) / sum : shifted - log_sum);
    }
  }
}

// Softmax: y (dy - sum(dy y)). LogSoftmax: dy - e^y sum(dy).
template <typename Team>
__global__ void __launch_bounds__(kBlockThreads) SoftmaxGradient(SoftmaxArguments a) {
  for (int64_t row = Team::FirstRow(); row < a.outer * a.inner; row += Team::RowStride()) {
    const int64_t start = RowStart(a, row);
    float sum = 0;
    for (int64_t i = Team::Thread(); i < a.length; i += blockDim.x / Team::kRowsPerBlock) {
      const int64_t at = start + i * a.inner;
      const float dy = LoadFloat(a.x, a.dtype, at);
      sum += a.kind == SoftmaxKind::kSoftmax ? dy * LoadFloat(a.y, a.dtype, at) : dy;
    }
    sum = Team::template Reduce<Plus>(sum);
    for (int64_t i = Team::Thread(); i < a.length; i += blockDim.x / Team::kRowsPerBlock) {
      const int64_t at = start + i * a.inner;
      const float dy = LoadFloat(a.x, a.dtype, at);
      const float y = LoadFloat(a.y, a.dtype, at);
      StoreFloat(a.result, a.dtype, at, a.kind == SoftmaxKind::kSoftmax ? y * (dy - sum) : dy - math::Exp(y) * sum);
    }
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchSoftmax(const SoftmaxArguments& a, cudaStream_t stream) {
  const int64_t rows = a.outer * a.inner;
  if (rows * a.length == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH_ROWS(cuda_kernels::Softmax, rows, a.length, stream, a);
}

cudaError_t LaunchSoftmaxGradient(const SoftmaxArguments& a, cudaStream_t stream) {
  const int64_t rows = a.outer * a.inner;
  if (rows * a.length == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH_ROWS(cuda_kernels::SoftmaxGradient, rows, a.length, stream, a);
}

}  // namespace onnxtrain
