// SPDX-License-Identifier: Apache-2.0
// Clip, its gradient, IsNaN and IsInf.
#include "cuda_ops/kernels/clip.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"

namespace onnxtrain {
namespace {

// x, [lower], [upper] -> y
StatusOr<std::unique_ptr<Kernel>> MakeClip(const KernelContext& context) {
  const TensorType type = context.output_type(0);
  if (!IsDeviceFloat(type.dtype)) return UnsupportedTypes(context);
  return MakeLaunchKernel(context, [type](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchClip({args.inputs[0], nullptr, args.input<std::byte>(1), args.input<std::byte>(2), args.outputs[0],
                       type.elements(), type.dtype},
                      stream);
  });
}

// x, dy, [lower], [upper] -> dx
StatusOr<std::unique_ptr<Kernel>> MakeClipGrad(const KernelContext& context) {
  const TensorType type = context.output_type(0);
  if (!IsDeviceFloat(type.dtype)) return UnsupportedTypes(context);
  return MakeLaunchKernel(context, [type](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchClipGradient({args.inputs[0], args.inputs[1], args.input<std::byte>(2), args.input<std::byte>(3),
                               args.outputs[0], type.elements(), type.dtype},
                              stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeIsNaN(const KernelContext& context) {
  const TensorType type = context.input_type(0);
  if (!IsDeviceFloat(type.dtype)) return UnsupportedTypes(context);
  return MakeLaunchKernel(context, [type](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchIsNaN(args.inputs[0], type.dtype, args.output<bool>(0), type.elements(), stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeIsInf(const KernelContext& context) {
  const TensorType type = context.input_type(0);
  if (!IsDeviceFloat(type.dtype)) return UnsupportedTypes(context);
  const bool negative = context.node.attributes().Int("detect_negative", 1) != 0;
  const bool positive = context.node.attributes().Int("detect_positive", 1) != 0;
  return MakeLaunchKernel(context, [=](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchIsInfinite(args.inputs[0], type.dtype, positive, negative, args.output<bool>(0), type.elements(),
                            stream);
  });
}

}  // namespace

void AddClipOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("Clip", MakeClip);
  registry.Add("onnxtrain.ClipGrad", MakeClipGrad);
  registry.Add("IsNaN", MakeIsNaN);
  registry.Add("IsInf", MakeIsInf);
}

}  // namespace onnxtrain
