// SPDX-License-Identifier: Apache-2.0
// The one list of CUDA kernel families; base names as in graph/ops. A new family adds its line here and in all_ops.cc.
// `context` outlives the registry.
#ifndef ONNXTRAIN_CUDA_OPS_OPS_ALL_OPS_H_
#define ONNXTRAIN_CUDA_OPS_OPS_ALL_OPS_H_

namespace onnxtrain {

class KernelRegistry;
struct CudaContext;

void AddActivationOps(KernelRegistry& registry, const CudaContext& context);
void AddBatchNormalizationOps(KernelRegistry& registry, const CudaContext& context);
void AddBinaryLossOps(KernelRegistry& registry, const CudaContext& context);
void AddConvOps(KernelRegistry& registry, const CudaContext& context);
void AddPoolOps(KernelRegistry& registry, const CudaContext& context);
void AddBitwiseOps(KernelRegistry& registry, const CudaContext& context);
void AddCastOps(KernelRegistry& registry, const CudaContext& context);
void AddClipOps(KernelRegistry& registry, const CudaContext& context);
void AddPadOps(KernelRegistry& registry, const CudaContext& context);
void AddCollectiveOps(KernelRegistry& registry, const CudaContext& context);
void AddComparisonOps(KernelRegistry& registry, const CudaContext& context);
void AddCumulativeOps(KernelRegistry& registry, const CudaContext& context);
void AddDropoutOps(KernelRegistry& registry, const CudaContext& context);
void AddElementwiseOps(KernelRegistry& registry, const CudaContext& context);
void AddGatherOps(KernelRegistry& registry, const CudaContext& context);
void AddGroupNormalizationOps(KernelRegistry& registry, const CudaContext& context);
void AddLossOps(KernelRegistry& registry, const CudaContext& context);
void AddMatMulOps(KernelRegistry& registry, const CudaContext& context);
void AddMathFunctionOps(KernelRegistry& registry, const CudaContext& context);
void AddNormalizationOps(KernelRegistry& registry, const CudaContext& context);
void AddOptimizerOps(KernelRegistry& registry, const CudaContext& context);
void AddReductionOps(KernelRegistry& registry, const CudaContext& context);
void AddResizeOps(KernelRegistry& registry, const CudaContext& context);
void AddScatterOps(KernelRegistry& registry, const CudaContext& context);
void AddShapeOps(KernelRegistry& registry, const CudaContext& context);
void AddSliceOps(KernelRegistry& registry, const CudaContext& context);
void AddSoftmaxOps(KernelRegistry& registry, const CudaContext& context);
void AddSortOps(KernelRegistry& registry, const CudaContext& context);
void AddStepControlOps(KernelRegistry& registry, const CudaContext& context);

void AddAllCudaOps(KernelRegistry& registry, const CudaContext& context);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_OPS_ALL_OPS_H_
