// SPDX-License-Identifier: Apache-2.0
// Functions of one number that are not activations.
#include <utility>

#include "cuda_ops/kernels/comparison.h"
#include "cuda_ops/kernels/unary.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"

namespace onnxtrain {
namespace {

constexpr std::pair<const char*, UnaryFunction> kFunctions[] = {
    {"Exp", UnaryFunction::kExp},     {"Log", UnaryFunction::kLog},
    {"Sqrt", UnaryFunction::kSqrt},   {"Reciprocal", UnaryFunction::kReciprocal},
    {"Neg", UnaryFunction::kNeg},     {"Abs", UnaryFunction::kAbs},
    {"Sign", UnaryFunction::kSign},   {"Floor", UnaryFunction::kFloor},
    {"Ceil", UnaryFunction::kCeil},   {"Round", UnaryFunction::kRound},
    {"Sin", UnaryFunction::kSin},     {"Cos", UnaryFunction::kCos},
    {"Tan", UnaryFunction::kTan},     {"Asin", UnaryFunction::kAsin},
    {"Acos", UnaryFunction::kAcos},   {"Atan", UnaryFunction::kAtan},
    {"Sinh", UnaryFunction::kSinh},   {"Cosh", UnaryFunction::kCosh},
    {"Asinh", UnaryFunction::kAsinh}, {"Acosh", UnaryFunction::kAcosh},
    {"Atanh", UnaryFunction::kAtanh},
};

StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context, UnaryFunction function) {
  const TensorType& type = context.output_type(0);
  if (!IsDeviceFloat(type.dtype)) return UnsupportedTypes(context);
  const int64_t count = type.elements();
  return MakeLaunchKernel(context, [count, dtype = type.dtype, function](const LaunchArgs& args, cudaStream_t stream) {
    UnaryArguments a;
    a.x = args.inputs[0];
    a.y = args.outputs[0];
    a.count = count;
    a.dtype = dtype;
    return LaunchMathFunction(function, a, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeNot(const KernelContext& context) {
  if (context.input_type(0).dtype != DType::kBool) return UnsupportedTypes(context);
  const int64_t count = context.output_type(0).elements();
  return MakeLaunchKernel(context, [count](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchNot(args.input<bool>(0), args.output<bool>(0), count, stream);
  });
}

}  // namespace

void AddMathFunctionOps(KernelRegistry& registry, const CudaContext&) {
  for (const auto& [op, function] : kFunctions) {
    registry.Add(op, [function = function](const KernelContext& context) { return Make(context, function); });
  }
  registry.Add("Not", MakeNot);
}

}  // namespace onnxtrain
