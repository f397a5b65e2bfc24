// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/binary_loss.h"

#include "cuda_ops/kernels/reduction.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"

namespace onnxtrain {
namespace {

enum class Reduced : uint8_t { kNot, kSum, kMean };

Reduced ReductionOf(const KernelContext& context) {
  const std::string reduction = context.node.attributes().String("reduction", "mean");
  return reduction == "none" ? Reduced::kNot : reduction == "sum" ? Reduced::kSum : Reduced::kMean;
}

// x, target -> loss
StatusOr<std::unique_ptr<Kernel>> MakeLoss(const KernelContext& context) {
  const TensorType& x = context.input_type(0);
  if (!IsDeviceFloat(x.dtype)) return UnsupportedTypes(context);
  BinaryLossArguments constants;
  constants.dtype = x.dtype;
  constants.count = x.elements();
  const Reduced reduced = ReductionOf(context);
  constants.result_dtype = reduced == Reduced::kNot ? x.dtype : DType::kFloat;
  ReductionArguments sum;
  (void)MakeStridedLoop<1>({1}, {std::vector<int64_t>{0}}, {}, &sum.kept);
  (void)MakeStridedLoop<1>({constants.count}, {std::vector<int64_t>{1}}, {}, &sum.reduced);
  sum.rows = true;
  sum.y_dtype = x.dtype;
  sum.function = reduced == Reduced::kMean ? ReduceFunction::kMean : ReduceFunction::kSum;
  const auto call = [=](const LaunchArgs& args, cudaStream_t stream) {
    BinaryLossArguments a = constants;
    a.x = args.inputs[0];
    a.target = args.inputs[1];
    a.result = reduced == Reduced::kNot ? args.outputs[0] : args.workspace;
    const cudaError_t error = LaunchBinaryLoss(a, stream);
    if (error != cudaSuccess || reduced == Reduced::kNot) return error;
    ReductionArguments total = sum;
    total.x = args.workspace;
    total.y = args.outputs[0];
    return LaunchReduction(total, stream);
  };
  const size_t bytes = reduced == Reduced::kNot ? 0 : static_cast<size_t>(constants.count) * sizeof(float);
  return MakeLaunchKernel(context, call, bytes);
}

// dL/dloss, x, target -> dL/dx
StatusOr<std::unique_ptr<Kernel>> MakeGradient(const KernelContext& context) {
  const TensorType& x = context.input_type(1);
  if (!IsDeviceFloat(x.dtype) || context.input_type(0).dtype != x.dtype) return UnsupportedTypes(context);
  BinaryLossArguments constants;
  constants.dtype = x.dtype;
  constants.count = x.elements();
  const Reduced reduced = ReductionOf(context);
  constants.dloss_each = reduced == Reduced::kNot;
  if (reduced == Reduced::kMean && constants.count > 0) constants.scale = 1.0f / static_cast<float>(constants.count);
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    BinaryLossArguments a = constants;
    a.dloss = args.inputs[0];
    a.x = args.inputs[1];
    a.target = args.inputs[2];
    a.result = args.outputs[0];
    return LaunchBinaryLossGradient(a, stream);
  });
}

}  // namespace

void AddBinaryLossOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("onnxtrain.BinaryCrossEntropyWithLogits", MakeLoss);
  registry.Add("onnxtrain.BinaryCrossEntropyWithLogitsGrad", MakeGradient);
}

}  // namespace onnxtrain
