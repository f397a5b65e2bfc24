// SPDX-License-Identifier: Apache-2.0
// The one list of CUDA kernel families; base names as in graph/ops. A new family adds its line here and in all_ops.cc.
// `context` outlives the registry.
#ifndef ONNXTRAIN_CUDA_OPS_OPS_ALL_OPS_H_
#define ONNXTRAIN_CUDA_OPS_OPS_ALL_OPS_H_

namespace onnxtrain {

class KernelRegistry;
struct CudaContext;

void AddOptimizerOps(KernelRegistry& registry, const CudaContext& context);
void AddStepControlOps(KernelRegistry& registry, const CudaContext& context);

void AddAllCudaOps(KernelRegistry& registry, const CudaContext& context);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_OPS_ALL_OPS_H_
