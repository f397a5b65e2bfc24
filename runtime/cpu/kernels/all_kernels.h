// SPDX-License-Identifier: Apache-2.0
// The one list of CPU kernel families; base names as in graph/ops. A new family adds its line here and in all_kernels.cc.
#ifndef ONNXTRAIN_RUNTIME_CPU_KERNELS_ALL_KERNELS_H_
#define ONNXTRAIN_RUNTIME_CPU_KERNELS_ALL_KERNELS_H_

namespace onnxtrain {

class KernelRegistry;

void AddActivationKernels(KernelRegistry& registry);
void AddCastKernels(KernelRegistry& registry);
void AddCollectiveKernels(KernelRegistry& registry);
void AddComparisonKernels(KernelRegistry& registry);
void AddConvKernels(KernelRegistry& registry);
void AddCumulativeKernels(KernelRegistry& registry);
void AddDropoutKernels(KernelRegistry& registry);
void AddElementwiseKernels(KernelRegistry& registry);
void AddGatherKernels(KernelRegistry& registry);
void AddLossKernels(KernelRegistry& registry);
void AddMatMulKernels(KernelRegistry& registry);
void AddMathFunctionKernels(KernelRegistry& registry);
void AddNormalizationKernels(KernelRegistry& registry);
void AddOptimizerKernels(KernelRegistry& registry);
void AddPadKernels(KernelRegistry& registry);
void AddPoolKernels(KernelRegistry& registry);
void AddReductionKernels(KernelRegistry& registry);
void AddResizeKernels(KernelRegistry& registry);
void AddScatterKernels(KernelRegistry& registry);
void AddShapeKernels(KernelRegistry& registry);
void AddSliceKernels(KernelRegistry& registry);
void AddSoftmaxKernels(KernelRegistry& registry);
void AddSortKernels(KernelRegistry& registry);
void AddTransposeKernels(KernelRegistry& registry);

void AddAllKernels(KernelRegistry& registry);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_KERNELS_ALL_KERNELS_H_
