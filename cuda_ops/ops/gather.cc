// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/gather.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"

namespace onnxtrain {
namespace {

GatherArguments Constants(const KernelContext& context, const Shape& data, const TensorType& indices) {
  int64_t axis = context.node.attributes().Int("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(data.size());
  const std::span<const int64_t> sizes(data);
  GatherArguments a;
  a.outer = ElementsOf(sizes.first(static_cast<size_t>(axis)));
  a.size = sizes[static_cast<size_t>(axis)];
  a.inner = ElementsOf(sizes.subspan(static_cast<size_t>(axis) + 1));
  a.count = indices.elements();
  a.index_dtype = indices.dtype;
  a.node_index = context.node_index;
  return a;
}

StatusOr<std::unique_ptr<Kernel>> MakeGather(const KernelContext& context) {
  const DType dtype = context.input_type(0).dtype;
  if (!IsMovable(dtype) || !IsDeviceInteger(context.input_type(1).dtype)) return UnsupportedTypes(context);
  const GatherArguments constants = Constants(context, context.input_type(0).shape, context.input_type(1));
  return MakeLaunchKernel(context, [constants, bytes = SizeOf(dtype)](const LaunchArgs& args, cudaStream_t stream) {
    GatherArguments a = constants;
    a.data = args.inputs[0];
    a.indices = args.inputs[1];
    a.result = args.outputs[0];
    a.status_word = args.status_word;
    return LaunchGather(a, bytes, stream);
  });
}

// indices, dy -> dx
StatusOr<std::unique_ptr<Kernel>> MakeGatherGrad(const KernelContext& context) {
  const DType dtype = context.input_type(1).dtype;
  if (!IsDeviceFloat(dtype) || !IsDeviceInteger(context.input_type(0).dtype)) return UnsupportedTypes(context);
  const GatherArguments constants = Constants(context, context.output_type(0).shape, context.input_type(0));
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  if (constants.count >= kMost || constants.size >= kMost) {
    return InvalidModelError(context.node.Describe() + ": the CUDA kernel adds fewer than 2^31 - 1 rows");
  }
  const auto call = [constants, dtype](const LaunchArgs& args, cudaStream_t stream) {
    GatherArguments a = constants;
    a.data = args.inputs[1];
    a.indices = args.inputs[0];
    a.result = args.outputs[0];
    a.status_word = args.status_word;
    return LaunchGatherGradient(a, dtype, args.workspace, stream);
  };
  return MakeLaunchKernel(context, call, GatherGradientWorkspace(constants));
}

}  // namespace

void AddGatherOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("Gather", MakeGather);
  registry.Add("onnxtrain.GatherGrad", MakeGatherGrad);
}

}  // namespace onnxtrain
