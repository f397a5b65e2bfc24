// SPDX-License-Identifier: Apache-2.0
// Activations and their gradients.
#include "cuda_ops/kernels/unary.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "runtime/activation_ops.h"

namespace onnxtrain {
namespace {

UnaryArguments Constants(const KernelContext& context, const Activation& activation) {
  UnaryArguments a;
  a.count = context.output_type(0).elements();
  a.dtype = context.output_type(0).dtype;
  a.alpha = static_cast<float>(activation.alpha);
  a.beta = static_cast<float>(activation.beta);
  return a;
}

StatusOr<std::unique_ptr<Kernel>> MakeValue(const KernelContext& context, const Activation& activation) {
  if (!IsDeviceFloat(context.output_type(0).dtype)) return UnsupportedTypes(context);
  const UnaryArguments constants = Constants(context, activation);
  return MakeLaunchKernel(context, [=, function = activation.function](const LaunchArgs& args, cudaStream_t stream) {
    UnaryArguments a = constants;
    a.x = args.inputs[0];
    a.y = args.outputs[0];
    return LaunchActivation(function, a, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeGradient(const KernelContext& context, const Activation& activation) {
  if (!IsDeviceFloat(context.output_type(0).dtype)) return UnsupportedTypes(context);
  const UnaryArguments constants = Constants(context, activation);
  return MakeLaunchKernel(context, [=, function = activation.function](const LaunchArgs& args, cudaStream_t stream) {
    UnaryArguments a = constants;
    a.x = args.inputs[0];
    a.dy = args.inputs[1];
    a.y = args.outputs[0];
    return LaunchActivationGradient(function, a, stream);
  });
}

}  // namespace

void AddActivationOps(KernelRegistry& registry, const CudaContext&) {
  for (const std::string& op : ActivationOps()) {
    registry.Add(op, [op](const KernelContext& context) {
      return MakeValue(context, ActivationOf(op, context.node.attributes()));
    });
    registry.Add("onnxtrain." + op + "Grad", [op](const KernelContext& context) {
      return MakeGradient(context, ActivationOf(op, context.node.attributes()));
    });
  }
}

}  // namespace onnxtrain
