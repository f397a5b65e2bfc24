// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/all_ops.h"

namespace onnxtrain {

void AddAllOps(OpRegistry& registry) {
  AddActivationOps(registry);
  AddCollectiveOps(registry);
  AddConvOps(registry);
  AddDropoutOps(registry);
  AddEinsumOps(registry);
  AddElementwiseOps(registry);
  AddGatherOps(registry);
  AddLossOps(registry);
  AddMathFunctionOps(registry);
  AddMatMulOps(registry);
  AddNormalizationOps(registry);
  AddOptimizerOps(registry);
  AddPoolOps(registry);
  AddReductionOps(registry);
  AddResizeOps(registry);
  AddShapeOps(registry);
  AddSliceOps(registry);
  AddSoftmaxOps(registry);
  AddRemainingSchemaOps(registry);
}

}  // namespace onnxtrain
