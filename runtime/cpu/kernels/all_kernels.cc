// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/kernels/all_kernels.h"

namespace onnxtrain {

void AddAllKernels(KernelRegistry& registry) {
  AddActivationKernels(registry);
  AddCastKernels(registry);
  AddCollectiveKernels(registry);
  AddConvKernels(registry);
  AddDropoutKernels(registry);
  AddElementwiseKernels(registry);
  AddGatherKernels(registry);
  AddLossKernels(registry);
  AddMathFunctionKernels(registry);
  AddMatMulKernels(registry);
  AddNormalizationKernels(registry);
  AddOptimizerKernels(registry);
  AddPoolKernels(registry);
  AddReductionKernels(registry);
  AddShapeKernels(registry);
  AddSliceKernels(registry);
  AddSoftmaxKernels(registry);
  AddTransposeKernels(registry);
}

}  // namespace onnxtrain
