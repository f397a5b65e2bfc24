// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/kernels/all_kernels.h"

namespace onnxtrain {

void AddAllKernels(KernelRegistry& registry) {
  AddActivationKernels(registry);
  AddCastKernels(registry);
  AddCollectiveKernels(registry);
  AddComparisonKernels(registry);
  AddConvKernels(registry);
  AddCumulativeKernels(registry);
  AddDropoutKernels(registry);
  AddElementwiseKernels(registry);
  AddGatherKernels(registry);
  AddLossKernels(registry);
  AddMatMulKernels(registry);
  AddMathFunctionKernels(registry);
  AddNormalizationKernels(registry);
  AddOptimizerKernels(registry);
  AddPadKernels(registry);
  AddPoolKernels(registry);
  AddReductionKernels(registry);
  AddResizeKernels(registry);
  AddScatterKernels(registry);
  AddShapeKernels(registry);
  AddSliceKernels(registry);
  AddSoftmaxKernels(registry);
  AddSortKernels(registry);
  AddTransposeKernels(registry);
}

}  // namespace onnxtrain
