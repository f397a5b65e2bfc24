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

CountedPositions CountedOf(const Window& window, const DeviceWindow& device, bool padding) {
  CountedPositions counted{padding, device.depth.input, device.height.input, device.width.input};
  int32_t* const ends[] = {&counted.depth, &counted.height, &counted.width};
  for (size_t i = 0; padding && i < window.axes(); ++i) {
    *ends[3 - window.axes() + i] += static_cast<int32_t>(window.pads_end[i]);
  }
  return counted;
}

StatusOr<AveragePoolArguments> AverageConstants(const KernelContext& context, const TensorType& x,
                                                const TensorType& y) {
  ASSIGN_OR_RETURN(const PoolArguments pool, Constants(context, x, y));
  const Attributes& attributes = context.node.attributes();
  ASSIGN_OR_RETURN(const Window window, WindowOf(attributes, SpatialOf(x.shape), attributes.Ints("kernel_shape")));
  AveragePoolArguments a;
  a.planes = pool.planes;
  a.window = pool.window;
  a.dtype = pool.dtype;
  a.counted = CountedOf(window, pool.window, attributes.Int("count_include_pad", 0) != 0);
  return a;
}

using AveragePoolLauncher = cudaError_t (*)(const AveragePoolArguments&, cudaStream_t);

// x -> y, or dy -> dx with the types of x and y that belong to it
StatusOr<std::unique_ptr<Kernel>> MakeAverage(const KernelContext& context, const TensorType& x, const TensorType& y,
                                              AveragePoolLauncher launcher) {
  ASSIGN_OR_RETURN(const AveragePoolArguments constants, AverageConstants(context, x, y));
  return MakeLaunchKernel(context, [constants, launcher](const LaunchArgs& args, cudaStream_t stream) {
    AveragePoolArguments a = constants;
    a.from = args.inputs[0];
    a.to = args.outputs[0];
    return launcher(a, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeAveragePool(const KernelContext& context) {
  return MakeAverage(context, context.input_type(0), context.output_type(0), LaunchAveragePool);
}

StatusOr<std::unique_ptr<Kernel>> MakeAveragePoolGrad(const KernelContext& context) {
  return MakeAverage(context, context.output_type(0), context.input_type(0), LaunchAveragePoolGradient);
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
  registry.Add("AveragePool", MakeAveragePool);
  registry.Add("onnxtrain.AveragePoolGrad", MakeAveragePoolGrad);
  registry.Add("GlobalAveragePool", [](const KernelContext& c) { return MakeGlobal(c, ReduceFunction::kMean); });
  registry.Add("GlobalMaxPool", [](const KernelContext& c) { return MakeGlobal(c, ReduceFunction::kMax); });
}

}  // namespace onnxtrain
