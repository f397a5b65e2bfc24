// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/ops/all_ops.h"

namespace onnxtrain {

void AddAllCudaOps(KernelRegistry& registry, const CudaContext& context) {
  AddActivationOps(registry, context);
  AddBatchNormalizationOps(registry, context);
  AddBinaryLossOps(registry, context);
  AddConvOps(registry, context);
  AddPoolOps(registry, context);
  AddBitwiseOps(registry, context);
  AddCastOps(registry, context);
  AddClipOps(registry, context);
  AddPadOps(registry, context);
  AddCollectiveOps(registry, context);
  AddComparisonOps(registry, context);
  AddCumulativeOps(registry, context);
  AddDropoutOps(registry, context);
  AddElementwiseOps(registry, context);
  AddGatherOps(registry, context);
  AddGroupNormalizationOps(registry, context);
  AddLossOps(registry, context);
  AddMatMulOps(registry, context);
  AddMathFunctionOps(registry, context);
  AddNormalizationOps(registry, context);
  AddOptimizerOps(registry, context);
  AddReductionOps(registry, context);
  AddResizeOps(registry, context);
  AddScatterOps(registry, context);
  AddShapeOps(registry, context);
  AddSliceOps(registry, context);
  AddSoftmaxOps(registry, context);
  AddSortOps(registry, context);
  AddStepControlOps(registry, context);
}

}  // namespace onnxtrain
