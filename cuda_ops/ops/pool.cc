// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/pool.h"

#include "cuda_ops/kernels/reduction.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "cuda_ops/ops/windows.h"

namespace onnxtrain {
namespace {

StatusOr<PoolArguments> Constants(const KernelContext& context, const TensorType& x, const TensorType& y) {
  if (!IsDeviceFloat(x.dtype) || x.dtype != y.dtype) return UnsupportedTypes(context);
  const Attributes& attributes = context.node.attributes();
  const auto window = WindowOf(attributes, SpatialOf(x.shape), attributes.Ints("kernel_shape"));
  if (!window.ok()) return window.status().Prepend(context.node.Describe());
  PoolArguments a;
  ASSIGN_OR_RETURN(a.window, DeviceWindowOf(*window, SpatialOf(x.shape), SpatialOf(y.shape)));
  a.planes = x.shape[0] * x.shape[1];
  a.dtype = x.dtype;
  return a;
}

StatusOr<std::unique_ptr<Kernel>> MakeMaxPool(const KernelContext& context) {
  if (context.node.output(1) != nullptr && context.node.attributes().Int("storage_order", 0) != 0) {
    return InvalidModelError(context.node.Describe() + ": the CUDA kernel counts indices row by row only");
  }
  ASSIGN_OR_RETURN(const PoolArguments constants, Constants(context, context.input_type(0), context.output_type(0)));
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    PoolArguments a = constants;
    a.x = args.inputs[0];
    a.result = args.outputs[0];
    a.indices = args.output<int64_t>(1);
    return LaunchMaxPool(a, stream);
  });
}

// dy, x -> dx
StatusOr<std::unique_ptr<Kernel>> MakeMaxPoolGrad(const KernelContext& context) {
  ASSIGN_OR_RETURN(const PoolArguments constants, Constants(context, context.input_type(1), context.input_type(0)));
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    PoolArguments a = constants;
    a.dy = args.inputs[0];
    a.x = args.inputs[1];
    a.result = args.outputs[0];
    return LaunchMaxPoolGradient(a, stream);
  });
}

// The mean of every plane.
StatusOr<std::unique_ptr<Kernel>> MakeGlobal(const KernelContext& context, ReduceFunction function) {
  const TensorType& x = context.input_type(0);
  if (!IsDeviceFloat(x.dtype)) return UnsupportedTypes(context);
  const int64_t planes = x.shape[0] * x.shape[1];
  const int64_t size = ElementsOf(SpatialOf(x.shape));
  ReductionArguments constants;
  (void)MakeStridedLoop<1>({planes}, {std::vector<int64_t>{size}}, {}, &constants.kept);
  (void)MakeStridedLoop<1>({size}, {std::vector<int64_t>{1}}, {}, &constants.reduced);
  constants.rows = true;
  constants.dtype = x.dtype;
  constants.y_dtype = x.dtype;
  constants.function = function;
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    ReductionArguments a = constants;
    a.x = args.inputs[0];
    a.y = args.outputs[0];
    return LaunchReduction(a, stream);
  });
}

}  // namespace

void AddPoolOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("MaxPool", MakeMaxPool);
  registry.Add("onnxtrain.MaxPoolGrad", MakeMaxPoolGrad);
  registry.Add("GlobalAveragePool", [](const KernelContext& c) { return MakeGlobal(c, ReduceFunction::kMean); });
  registry.Add("GlobalMaxPool", [](const KernelContext& c) { return MakeGlobal(c, ReduceFunction::kMax); });
}

}  // namespace onnxtrain
