// SPDX-License-Identifier: Apache-2.0
// Parts of the family of normalizations that have files of their own.
#ifndef ONNXTRAIN_RUNTIME_CPU_KERNELS_NORMALIZATION_KERNELS_H_
#define ONNXTRAIN_RUNTIME_CPU_KERNELS_NORMALIZATION_KERNELS_H_

namespace onnxtrain {

class KernelRegistry;

void AddBatchNormalizationKernels(KernelRegistry& registry);
void AddGroupNormalizationKernels(KernelRegistry& registry);  // InstanceNormalization too: one channel a group

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_KERNELS_NORMALIZATION_KERNELS_H_
