// SPDX-License-Identifier: Apache-2.0
// GroupNormalization, and InstanceNormalization as its case of one channel a group.
#include "cuda_ops/kernels/group_normalization.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "graph/attributes.h"

namespace onnxtrain {
namespace {

// `x` and `scale` are indices of inputs; everything behind scale has its type.
StatusOr<GroupNormalizationArguments> Constants(const KernelContext& context, size_t x, size_t scale, int64_t groups) {
  const TensorType& type = context.input_type(x);
  GroupNormalizationArguments a;
  a.dtype = type.dtype;
  a.parameter_dtype = context.input_type(scale).dtype;
  for (size_t i = scale; i < context.node.inputs().size(); ++i) {
    if (context.input_type(i).dtype != a.parameter_dtype) return UnsupportedTypes(context);
  }
  if (!IsDeviceFloat(a.dtype) || !IsDeviceFloat(a.parameter_dtype) || context.output_type(0).dtype != a.dtype)
    return UnsupportedTypes(context);
  a.samples = type.shape[0];
  a.channels = type.shape[1];
  a.groups = groups;
  a.inner = ElementsOf(std::span(type.shape).subspan(2));
  a.epsilon = DecimalValue(context.node.attributes().Float("epsilon", 1e-5f));
  return a;
}

// x, scale, bias -> y
StatusOr<std::unique_ptr<Kernel>> MakeForward(const KernelContext& context, int64_t groups) {
  ASSIGN_OR_RETURN(const GroupNormalizationArguments constants, Constants(context, 0, 1, groups));
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    GroupNormalizationArguments a = constants;
    a.x = args.inputs[0];
    a.scale = args.inputs[1];
    a.bias = args.inputs[2];
    a.y = args.outputs[0];
    return LaunchGroupNormalization(a, stream);
  });
}

// dy, x, scale -> dx, dscale, dbias
StatusOr<std::unique_ptr<Kernel>> MakeGradient(const KernelContext& context, int64_t groups) {
  ASSIGN_OR_RETURN(const GroupNormalizationArguments constants, Constants(context, 1, 2, groups));
  const auto launch = [constants](const LaunchArgs& args, cudaStream_t stream) {
    GroupNormalizationArguments a = constants;
    a.dy = args.inputs[0];
    a.x = args.inputs[1];
    a.scale = args.inputs[2];
    a.dx = args.outputs[0];
    a.dscale = args.output<std::byte>(1);
    a.dbias = args.output<std::byte>(2);
    a.workspace = args.workspace;
    return LaunchGroupNormalizationGradient(a, stream);
  };
  return MakeLaunchKernel(context, launch, GroupNormalizationGradientBytes(constants));
}

int64_t GroupsOf(const KernelContext& context) { return context.node.attributes().Int("num_groups", 1); }

}  // namespace

void AddGroupNormalizationOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("GroupNormalization", [](const KernelContext& c) { return MakeForward(c, GroupsOf(c)); });
  registry.Add("InstanceNormalization",
               [](const KernelContext& c) { return MakeForward(c, c.input_type(0).shape[1]); });
  registry.Add("onnxtrain.GroupNormalizationGrad", [](const KernelContext& c) { return MakeGradient(c, GroupsOf(c)); });
}

}  // namespace onnxtrain
