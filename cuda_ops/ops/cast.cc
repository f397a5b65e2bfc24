// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/cast.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/launch_kernel.h"

namespace onnxtrain {
namespace {

StatusOr<std::unique_ptr<Kernel>> MakeCast(const KernelContext& context) {
  const DType from = context.input_type(0).dtype;
  const DType to = context.output_type(0).dtype;
  if (!CanCast(from) || !CanCast(to)) return UnsupportedTypes(context);
  const int64_t count = context.output_type(0).elements();
  return MakeLaunchKernel(context, [=](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchCast(args.inputs[0], from, args.outputs[0], to, count, stream);
  });
}

}  // namespace

void AddCastOps(KernelRegistry& registry, const CudaContext&) { registry.Add("Cast", MakeCast); }

}  // namespace onnxtrain
