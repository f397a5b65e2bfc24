// SPDX-License-Identifier: Apache-2.0
// Kernels of one formula over all elements: y = f(x), and dx = g(p, dy). Device code; the formulas are those of the
// CPU.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_UNARY_KERNEL_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_UNARY_KERNEL_H_

#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"
#include "cuda_ops/kernels/unary.h"
#include "runtime/math/activation.h"

namespace onnxtrain::cuda_kernels {

template <typename Formula>
__global__ void __launch_bounds__(kBlockThreads) UnaryValue(UnaryArguments a) {
  const math::ActivationScalars<float> scalars{a.alpha, a.beta};
  for (int64_t i = FirstElement(); i < a.count; i += ElementStride()) {
    StoreFloat(a.y, a.dtype, i, Formula::Value(LoadFloat(a.x, a.dtype, i), scalars));
  }
}

template <typename Formula>
__global__ void __launch_bounds__(kBlockThreads) UnaryGradient(UnaryArguments a) {
  const math::ActivationScalars<float> scalars{a.alpha, a.beta};
  for (int64_t i = FirstElement(); i < a.count; i += ElementStride()) {
    StoreFloat(a.y, a.dtype, i, Formula::Gradient(LoadFloat(a.x, a.dtype, i), LoadFloat(a.dy, a.dtype, i), scalars));
  }
}

template <typename Formula>
cudaError_t LaunchValue(const UnaryArguments& a, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(UnaryValue<Formula>, ElementBlocks(a.count), kBlockThreads, 0, stream, a);
}

template <typename Formula>
cudaError_t LaunchGradient(const UnaryArguments& a, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(UnaryGradient<Formula>, ElementBlocks(a.count), kBlockThreads, 0, stream, a);
}

}  // namespace onnxtrain::cuda_kernels

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_UNARY_KERNEL_H_
