// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/kernels/all_kernels.h"

#include "runtime/cpu/widened_kernel.h"

namespace onnxtrain {

namespace {

void AddNativeKernels(KernelRegistry& registry) {
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

}  // namespace

void AddAllKernels(KernelRegistry& registry) {
  KernelRegistry native;
  AddNativeKernels(native);
  for (const std::string& op : native.Ops()) registry.Add(op, ServeHalfTypes(*native.Find(op)));
}

}  // namespace onnxtrain
