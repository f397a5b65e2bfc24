// SPDX-License-Identifier: Apache-2.0
// Views: nothing to do where the planner gave input and output the same bytes.
#include <cstring>

#include "cuda_ops/kernels/strided_copy.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"

namespace onnxtrain {
namespace {

StatusOr<std::unique_ptr<Kernel>> MakeView(const KernelContext& context) {
  const size_t bytes = context.output_type(0).bytes();
  return MakeLaunchKernel(context, [bytes](const LaunchArgs& args, cudaStream_t stream) {
    if (bytes == 0 || args.inputs[0] == args.outputs[0]) return cudaSuccess;
    return cudaMemcpyAsync(args.outputs[0], args.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeConstantOfShape(const KernelContext& context) {
  const TensorType& type = context.output_type(0);
  if (!IsMovable(type.dtype)) return UnsupportedTypes(context);
  const AttributeValue* attribute = context.node.attributes().Find("value");
  const Tensor* value = attribute == nullptr ? nullptr : std::get_if<Tensor>(attribute);
  uint64_t bits = 0;
  if (value != nullptr) std::memcpy(&bits, value->data(), SizeOf(type.dtype));
  return MakeLaunchKernel(context, [bits, count = type.elements(), bytes = SizeOf(type.dtype)](const LaunchArgs& args,
                                                                                               cudaStream_t stream) {
    return LaunchFill(args.outputs[0], bits, count, bytes, stream);
  });
}

}  // namespace

void AddShapeOps(KernelRegistry& registry, const CudaContext&) {
  for (const char* op : {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"}) registry.Add(op, MakeView);
  registry.Add("ConstantOfShape", MakeConstantOfShape);
}

}  // namespace onnxtrain
