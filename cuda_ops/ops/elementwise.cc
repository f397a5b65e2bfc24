// SPDX-License-Identifier: Apache-2.0
// Arithmetic with broadcasting. More than two operands are folded from the left into the output.
#include "cuda_ops/kernels/elementwise.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "cuda_ops/ops/loops.h"

namespace onnxtrain {
namespace {

Status CheckTypes(const KernelContext& context, bool integers) {
  const DType dtype = context.output_type(0).dtype;
  if (!IsDeviceFloat(dtype) && !(integers && (IsDeviceInteger(dtype) || dtype == DType::kDouble))) {
    return UnsupportedTypes(context);
  }
  for (const Value* input : context.node.inputs()) {
    if (input == nullptr || input->type().dtype != dtype) return UnsupportedTypes(context);
  }
  return OkStatus();
}

StatusOr<std::vector<StridedLoop<3>>> Folds(const KernelContext& context) {
  std::vector<StridedLoop<3>> folds;
  const Shape& y = context.output_type(0).shape;
  for (size_t i = 1; i < context.node.inputs().size(); ++i) {
    const Shape& left = i == 1 ? context.input_type(0).shape : y;
    ASSIGN_OR_RETURN(const StridedLoop<3> loop,
                     LoopFor<3>(context, y,
                                {BroadcastLoopStrides(left, y), BroadcastLoopStrides(context.input_type(i).shape, y),
                                 DenseLoopStrides(y)}));
    folds.push_back(loop);
  }
  return folds;
}

StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context, ArithmeticFunction function, bool integers,
                                       bool mean) {
  RETURN_IF_ERROR(CheckTypes(context, integers));
  ASSIGN_OR_RETURN(const std::vector<StridedLoop<3>> folds, Folds(context));
  const TensorType type = context.output_type(0);
  const float scale = mean ? 1.0f / static_cast<float>(context.node.inputs().size()) : 1.0f;
  return MakeLaunchKernel(context, [=](const LaunchArgs& args, cudaStream_t stream) {
    if (folds.empty()) {  // one operand
      const bool in_place = args.inputs[0] == args.outputs[0];
      if (in_place || type.bytes() == 0) return cudaSuccess;
      return cudaMemcpyAsync(args.outputs[0], args.inputs[0], type.bytes(), cudaMemcpyDeviceToDevice, stream);
    }
    for (size_t i = 0; i < folds.size(); ++i) {
      BinaryArguments g;
      g.a = i == 0 ? args.inputs[0] : args.outputs[0];
      g.b = args.inputs[i + 1];
      g.y = args.outputs[0];
      g.loop = folds[i];
      g.dtype = type.dtype;
      g.scale = i + 1 == folds.size() ? scale : 1.0f;
      if (const cudaError_t error = LaunchArithmetic(function, g, stream); error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

void Add(KernelRegistry& registry, const char* op, ArithmeticFunction function, bool integers, bool mean = false) {
  registry.Add(op, [=](const KernelContext& context) { return Make(context, function, integers, mean); });
}

}  // namespace

void AddElementwiseOps(KernelRegistry& registry, const CudaContext&) {
  Add(registry, "Add", ArithmeticFunction::kAdd, true);
  Add(registry, "Sub", ArithmeticFunction::kSub, true);
  Add(registry, "Mul", ArithmeticFunction::kMul, true);
  Add(registry, "Div", ArithmeticFunction::kDiv, false);
  Add(registry, "Max", ArithmeticFunction::kMax, true);
  Add(registry, "Min", ArithmeticFunction::kMin, true);
  Add(registry, "Pow", ArithmeticFunction::kPow, false);
  Add(registry, "PRelu", ArithmeticFunction::kPRelu, true);
  Add(registry, "Sum", ArithmeticFunction::kAdd, false);
  Add(registry, "Mean", ArithmeticFunction::kAdd, false, /*mean=*/true);
}

}  // namespace onnxtrain
