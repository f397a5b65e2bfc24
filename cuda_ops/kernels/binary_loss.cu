// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/binary_loss.h"

#include <cmath>

#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"
#include "runtime/math/binary_cross_entropy.h"

namespace onnxtrain {
namespace cuda_kernels {

__global__ void __launch_bounds__(kBlockThreads) BinaryLoss(BinaryLossArguments a) {
  for (int64_t i = FirstElement(); i < a.count; i += ElementStride()) {
    StoreFloat(a.result, a.result_dtype, i,
               math::BinaryCrossEntropy(LoadFloat(a.x, a.dtype, i), LoadFloat(a.target, a.dtype, i)));
  }
}

__global__ void __launch_bounds__(kBlockThreads) BinaryLossGradient(BinaryLossArguments a) {
  for (int64_t i = FirstElement(); i < a.count; i += ElementStride()) {
    const float dloss = LoadFloat(a.dloss, a.dtype, a.dloss_each ? i : 0) * a.scale;
    const float slope = math::BinaryCrossEntropyGradient(LoadFloat(a.x, a.dtype, i), LoadFloat(a.target, a.dtype, i));
    StoreFloat(a.result, a.dtype, i, slope * dloss);
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchBinaryLoss(const BinaryLossArguments& a, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::BinaryLoss, ElementBlocks(a.count), kBlockThreads, 0, stream, a);
}

cudaError_t LaunchBinaryLossGradient(const BinaryLossArguments& a, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::BinaryLossGradient, ElementBlocks(a.count), kBlockThreads, 0, stream, a);
}

}  // namespace onnxtrain
