// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/cumulative.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"

namespace onnxtrain {
namespace {

StatusOr<std::unique_ptr<Kernel>> MakeCumSum(const KernelContext& context) {
  const TensorType& type = context.input_type(0);
  if (!IsDeviceFloat(type.dtype) && !IsDeviceInteger(type.dtype) && type.dtype != DType::kDouble)
    return UnsupportedTypes(context);
  const Tensor* constant = context.node.input(1)->constant();
  if (constant == nullptr) {
    return InvalidModelError("the axis of " + context.node.Describe() + " must be a constant");
  }
  const int64_t given = constant->IntAt(0);
  const int64_t rank = type.rank();
  if (given < -rank || given >= rank) {
    return InvalidModelError(context.node.Describe() + " has " + std::to_string(rank) + " axes, not axis " +
                             std::to_string(given));
  }
  const auto axis = static_cast<size_t>(given < 0 ? given + rank : given);
  const std::span<const int64_t> sizes(type.shape);
  CumulativeSumArguments constants;
  constants.outer = ElementsOf(sizes.first(axis));
  constants.length = sizes[axis];
  constants.inner = ElementsOf(sizes.subspan(axis + 1));
  constants.exclusive = context.node.attributes().Int("exclusive", 0) != 0;
  constants.reverse = context.node.attributes().Int("reverse", 0) != 0;
  constants.dtype = type.dtype;
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    CumulativeSumArguments a = constants;
    a.x = args.inputs[0];
    a.y = args.outputs[0];
    return LaunchCumulativeSum(a, stream);
  });
}

}  // namespace

void AddCumulativeOps(KernelRegistry& registry, const CudaContext&) { registry.Add("CumSum", MakeCumSum); }

}  // namespace onnxtrain
