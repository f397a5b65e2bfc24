// SPDX-License-Identifier: Apache-2.0
// Launchers of the binary cross entropy of logits (runtime/math/binary_cross_entropy.h), element by element.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_BINARY_LOSS_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_BINARY_LOSS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

struct BinaryLossArguments {
  const void* x = nullptr;
  const void* target = nullptr;
  void* result = nullptr;  // losses; gradient: dx
  DType dtype = DType::kFloat;         // float, bfloat16, float16
  DType result_dtype = DType::kFloat;  // losses that are summed afterwards are float
  int64_t count = 0;
  const void* dloss = nullptr;  // gradient: one element, or `count`
  bool dloss_each = false;
  float scale = 1;  // gradient: dx = scale * dloss * (sigmoid(x) - target)
};
cudaError_t LaunchBinaryLoss(const BinaryLossArguments& arguments, cudaStream_t stream);
cudaError_t LaunchBinaryLossGradient(const BinaryLossArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_BINARY_LOSS_H_
