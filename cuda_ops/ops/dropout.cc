// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/dropout.h"

#include <algorithm>

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"

namespace onnxtrain {
namespace {

double RatioOf(const KernelContext& context) { return DecimalValue(context.node.attributes().Float("ratio", 0.5f)); }

StatusOr<DropoutArguments> Constants(const KernelContext& context) {
  const TensorType& type = context.output_type(0);
  if (!IsDeviceFloat(type.dtype) || context.input_type(0).dtype != type.dtype) return UnsupportedTypes(context);
  DropoutArguments a;
  a.count = type.elements();
  a.dtype = type.dtype;
  a.scale = static_cast<float>(1 / (1 - RatioOf(context)));
  return a;
}

// x, attempt -> y, mask
StatusOr<std::unique_ptr<Kernel>> MakeDraw(const KernelContext& context) {
  ASSIGN_OR_RETURN(DropoutArguments constants, Constants(context));
  const Attributes& attributes = context.node.attributes();
  constants.seed = attributes.Has("seed") ? static_cast<uint64_t>(attributes.Int("seed", 0)) : context.seed;
  constants.draw_id = static_cast<uint32_t>(attributes.Int("draw_id", 0));
  constants.slice = static_cast<uint32_t>(context.rank * context.accumulation);
  constants.threshold = static_cast<uint32_t>(std::min(RatioOf(context) * 4294967296.0, 4294967295.0));
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    DropoutArguments a = constants;
    a.x = args.inputs[0];
    a.attempt = args.input<int64_t>(1);
    a.y = args.outputs[0];
    a.mask = args.output<uint8_t>(1);
    a.slice += static_cast<uint32_t>(args.run == nullptr ? 0 : args.run->micro_batch);
    return LaunchDropout(a, stream);
  });
}

// dy, mask -> dx
StatusOr<std::unique_ptr<Kernel>> MakeGradient(const KernelContext& context) {
  ASSIGN_OR_RETURN(const DropoutArguments constants, Constants(context));
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    DropoutArguments a = constants;
    a.x = args.inputs[0];
    a.mask = const_cast<uint8_t*>(args.input<uint8_t>(1));
    a.y = args.outputs[0];
    return LaunchDropoutGradient(a, stream);
  });
}

bool IsConstantZero(const Value* value) {
  return value != nullptr && value->constant() != nullptr && value->constant()->DoubleAt(0) == 0;
}

// The standard operator where it drops nothing.
StatusOr<std::unique_ptr<Kernel>> MakeKeep(const KernelContext& context) {
  const Value* training = context.node.input(2);
  if (training != nullptr && !IsConstantZero(training) && !IsConstantZero(context.node.input(1))) {
    return InvalidModelError(context.node.Describe() +
                             ": a Dropout that trains must be made onnxtrain.Dropout by set_mode before it can run");
  }
  const TensorType type = context.output_type(0);
  return MakeLaunchKernel(context, [type](const LaunchArgs& args, cudaStream_t stream) {
    if (type.bytes() == 0) return cudaSuccess;
    cudaError_t error = cudaSuccess;
    if (args.outputs[0] != args.inputs[0]) {
      error = cudaMemcpyAsync(args.outputs[0], args.inputs[0], type.bytes(), cudaMemcpyDeviceToDevice, stream);
    }
    auto* const mask = args.output<uint8_t>(1);
    if (error != cudaSuccess || mask == nullptr) return error;
    return cudaMemsetAsync(mask, 1, static_cast<size_t>(type.elements()), stream);
  });
}

}  // namespace

void AddDropoutOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("Dropout", MakeKeep);
  registry.Add("onnxtrain.Dropout", MakeDraw);
  registry.Add("onnxtrain.DropoutGrad", MakeGradient);
}

}  // namespace onnxtrain
