// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/batch_normalization.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "graph/attributes.h"

namespace onnxtrain {
namespace {

// Inputs from `first_parameter` on are float.
StatusOr<BatchNormalizationArguments> Constants(const KernelContext& context, size_t x, size_t first_parameter) {
  const TensorType& type = context.input_type(x);
  for (size_t i = first_parameter; i < context.node.inputs().size(); ++i) {
    const Value* parameter = context.node.input(i);
    if (parameter != nullptr && parameter->type().dtype != DType::kFloat) return UnsupportedTypes(context);
  }
  if (!IsDeviceFloat(type.dtype) || context.output_type(0).dtype != type.dtype) return UnsupportedTypes(context);
  BatchNormalizationArguments a;
  a.samples = type.shape[0];
  a.channels = type.shape.size() < 2 ? 1 : type.shape[1];
  a.inner = type.shape.size() < 3 ? 1 : ElementsOf(std::span(type.shape).subspan(2));
  a.dtype = type.dtype;
  a.epsilon = context.node.attributes().Float("epsilon", 1e-5f);
  return a;
}

// x, scale, bias, mean, variance -> y, [mean, variance]
StatusOr<std::unique_ptr<Kernel>> MakeForward(const KernelContext& context) {
  ASSIGN_OR_RETURN(BatchNormalizationArguments constants, Constants(context, 0, 1));
  constants.training = context.node.attributes().Int("training_mode", 0) != 0;
  constants.momentum = DecimalValue(context.node.attributes().Float("momentum", 0.9f));
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    BatchNormalizationArguments a = constants;
    a.x = args.inputs[0];
    a.scale = args.input<float>(1);
    a.bias = args.input<float>(2);
    a.mean = args.input<float>(3);
    a.variance = args.input<float>(4);
    a.y = args.outputs[0];
    a.mean_new = args.output<float>(1);
    a.variance_new = args.output<float>(2);
    return LaunchBatchNormalization(a, stream);
  });
}

// dy, x, scale, [mean, variance] -> dx, dscale, dbias
StatusOr<std::unique_ptr<Kernel>> MakeGradient(const KernelContext& context) {
  ASSIGN_OR_RETURN(const BatchNormalizationArguments constants, Constants(context, 1, 2));
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    BatchNormalizationArguments a = constants;
    a.dy = args.inputs[0];
    a.x = args.inputs[1];
    a.scale = args.input<float>(2);
    a.mean = args.input<float>(3);
    a.variance = args.input<float>(4);
    a.dx = args.outputs[0];
    a.dscale = args.output<float>(1);
    a.dbias = args.output<float>(2);
    return LaunchBatchNormalizationGradient(a, stream);
  });
}

}  // namespace

void AddBatchNormalizationOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("BatchNormalization", MakeForward);
  registry.Add("onnxtrain.BatchNormalizationGrad", MakeGradient);
}

}  // namespace onnxtrain
