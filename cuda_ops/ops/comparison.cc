// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/comparison.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "cuda_ops/ops/loops.h"

namespace onnxtrain {
namespace {

StatusOr<std::unique_ptr<Kernel>> MakeCompare(const KernelContext& context, CompareFunction function) {
  const DType dtype = context.input_type(0).dtype;
  const bool served = IsDeviceFloat(dtype) || IsDeviceInteger(dtype) || dtype == DType::kBool;
  if (!served || context.input_type(1).dtype != dtype) return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(const StridedLoop<3> loop, BroadcastLoop<3>(context));
  return MakeLaunchKernel(context, [=](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchCompare(function, {args.inputs[0], args.inputs[1], args.output<bool>(0), loop, dtype}, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeWhere(const KernelContext& context) {
  const DType dtype = context.output_type(0).dtype;
  if (!IsMovable(dtype)) return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(const StridedLoop<4> loop, BroadcastLoop<4>(context));
  return MakeLaunchKernel(context, [loop, bytes = SizeOf(dtype)](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchSelect({args.input<bool>(0), args.inputs[1], args.inputs[2], args.outputs[0], loop, bytes}, stream);
  });
}

void Add(KernelRegistry& registry, const char* op, CompareFunction function) {
  registry.Add(op, [function](const KernelContext& context) { return MakeCompare(context, function); });
}

}  // namespace

void AddComparisonOps(KernelRegistry& registry, const CudaContext&) {
  Add(registry, "Equal", CompareFunction::kEqual);
  Add(registry, "Greater", CompareFunction::kGreater);
  Add(registry, "GreaterOrEqual", CompareFunction::kGreaterOrEqual);
  Add(registry, "Less", CompareFunction::kLess);
  Add(registry, "LessOrEqual", CompareFunction::kLessOrEqual);
  Add(registry, "And", CompareFunction::kAnd);
  Add(registry, "Or", CompareFunction::kOr);
  Add(registry, "Xor", CompareFunction::kXor);
  registry.Add("Where", MakeWhere);
}

}  // namespace onnxtrain
