// SPDX-License-Identifier: Apache-2.0
// Launchers of softmax, its logarithm and their gradients along one axis of [outer, length, inner].
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_SOFTMAX_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_SOFTMAX_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

enum class SoftmaxKind : uint8_t { kSoftmax, kLogSoftmax };

struct SoftmaxArguments {
  const void* x = nullptr;  // forward: the input; gradient: dy
  const void* y = nullptr;  // gradient: the result of forward
  void* result = nullptr;   // may be x
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
  DType dtype = DType::kFloat;  // float, bfloat16, float16; computed in float
  SoftmaxKind kind = SoftmaxKind::kSoftmax;
};
cudaError_t LaunchSoftmax(const SoftmaxArguments& arguments, cudaStream_t stream);
cudaError_t LaunchSoftmaxGradient(const SoftmaxArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_SOFTMAX_H_
