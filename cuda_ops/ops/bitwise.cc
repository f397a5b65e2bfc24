// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/bitwise.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "cuda_ops/ops/loops.h"

namespace onnxtrain {
namespace {

bool IsAnyInteger(DType dtype) { return IsMovable(dtype) && !IsFloating(dtype) && dtype != DType::kBool; }

StatusOr<std::unique_ptr<Kernel>> MakeBinary(const KernelContext& context, BitwiseFunction function) {
  const DType dtype = context.output_type(0).dtype;
  if (!IsAnyInteger(dtype)) return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(const StridedLoop<3> loop, BroadcastLoop<3>(context));
  return MakeLaunchKernel(context, [=, bytes = SizeOf(dtype)](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchBitwise(function, {args.inputs[0], args.inputs[1], args.outputs[0], loop, bytes}, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeShift(const KernelContext& context) {
  const bool left = context.node.attributes().String("direction", "") == "LEFT";
  return MakeBinary(context, left ? BitwiseFunction::kShiftLeft : BitwiseFunction::kShiftRight);
}

StatusOr<std::unique_ptr<Kernel>> MakeNot(const KernelContext& context) {
  const TensorType& type = context.output_type(0);
  if (!IsAnyInteger(type.dtype)) return UnsupportedTypes(context);
  return MakeLaunchKernel(
      context, [count = type.elements(), bytes = SizeOf(type.dtype)](const LaunchArgs& args, cudaStream_t stream) {
        return LaunchBitwiseNot(args.inputs[0], args.outputs[0], count, bytes, stream);
      });
}

void Add(KernelRegistry& registry, const char* op, BitwiseFunction function) {
  registry.Add(op, [function](const KernelContext& context) { return MakeBinary(context, function); });
}

}  // namespace

void AddBitwiseOps(KernelRegistry& registry, const CudaContext&) {
  Add(registry, "BitwiseAnd", BitwiseFunction::kAnd);
  Add(registry, "BitwiseOr", BitwiseFunction::kOr);
  Add(registry, "BitwiseXor", BitwiseFunction::kXor);
  registry.Add("BitShift", MakeShift);
  registry.Add("BitwiseNot", MakeNot);
}

}  // namespace onnxtrain
