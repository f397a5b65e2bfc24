// SPDX-License-Identifier: Apache-2.0
// onnxtrain.BinaryCrossEntropyWithLogits and its gradient, part of the family of losses (loss.cc).
#ifndef ONNXTRAIN_RUNTIME_CPU_KERNELS_BINARY_LOSS_H_
#define ONNXTRAIN_RUNTIME_CPU_KERNELS_BINARY_LOSS_H_

namespace onnxtrain {

class KernelRegistry;

void AddBinaryLossKernels(KernelRegistry& registry);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_KERNELS_BINARY_LOSS_H_
