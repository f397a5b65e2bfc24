// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/ops/all_ops.h"

#include "runtime/collective_kernels.h"
#include "runtime/kernel.h"

namespace onnxtrain {

void AddAllCudaOps(KernelRegistry& registry, const CudaContext& context) {
  AddCommunicatorKernels(registry);
  AddOptimizerOps(registry, context);
  AddStepControlOps(registry, context);
}

}  // namespace onnxtrain
