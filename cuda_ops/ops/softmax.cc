// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/softmax.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"

namespace onnxtrain {
namespace {

SoftmaxArguments Constants(const KernelContext& context, SoftmaxKind kind) {
  const Shape& shape = context.output_type(0).shape;
  int64_t axis = context.node.attributes().Int("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  const std::span<const int64_t> sizes(shape);
  SoftmaxArguments a;
  a.outer = ElementsOf(sizes.first(static_cast<size_t>(axis)));
  a.length = sizes[static_cast<size_t>(axis)];
  a.inner = ElementsOf(sizes.subspan(static_cast<size_t>(axis) + 1));
  a.dtype = context.output_type(0).dtype;
  a.kind = kind;
  return a;
}

StatusOr<std::unique_ptr<Kernel>> MakeForward(const KernelContext& context, SoftmaxKind kind) {
  if (!IsDeviceFloat(context.output_type(0).dtype)) return UnsupportedTypes(context);
  return MakeLaunchKernel(context, [constants = Constants(context, kind)](const LaunchArgs& args, cudaStream_t stream) {
    SoftmaxArguments a = constants;
    a.x = args.inputs[0];
    a.result = args.outputs[0];
    return LaunchSoftmax(a, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeGradient(const KernelContext& context, SoftmaxKind kind) {
  if (!IsDeviceFloat(context.output_type(0).dtype)) return UnsupportedTypes(context);
  return MakeLaunchKernel(context, [constants = Constants(context, kind)](const LaunchArgs& args, cudaStream_t stream) {
    SoftmaxArguments a = constants;
    a.x = args.inputs[0];
    a.y = args.inputs[1];
    a.result = args.outputs[0];
    return LaunchSoftmaxGradient(a, stream);
  });
}

}  // namespace

void AddSoftmaxOps(KernelRegistry& registry, const CudaContext&) {
  const auto add = [&](const std::string& op, SoftmaxKind kind) {
    registry.Add(op, [kind](const KernelContext& context) { return MakeForward(context, kind); });
    registry.Add("onnxtrain." + op + "Grad",
                 [kind](const KernelContext& context) { return MakeGradient(context, kind); });
  };
  add("Softmax", SoftmaxKind::kSoftmax);
  add("LogSoftmax", SoftmaxKind::kLogSoftmax);
}

}  // namespace onnxtrain
