// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/step_control.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "graph/attributes.h"
#include "runtime/learning_rate_options.h"

namespace onnxtrain {
namespace {

StatusOr<std::unique_ptr<Kernel>> MakeStepSums(const KernelContext& context) {
  if (context.input_type(0).dtype != DType::kFloat || context.input_type(1).dtype != DType::kFloat) {
    return UnsupportedTypes(context);
  }
  return MakeLaunchKernel(context, [](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchStepSums(
        {args.input<float>(0), args.input<float>(1), args.status_word, args.output<double>(0), args.output<int64_t>(1)},
        stream);
  });
}

// Partial sums of all inputs in the workspace, one after the other; then their sum.
StatusOr<std::unique_ptr<Kernel>> MakeSquaredNorm(const KernelContext& context) {
  std::vector<int64_t> counts;
  int64_t blocks = 0;
  for (const Value* input : context.node.inputs()) {
    if (input->type().dtype != DType::kFloat) return UnsupportedTypes(context);
    counts.push_back(input->type().elements());
    blocks += NormBlocks(counts.back());
  }
  const auto launch = [counts, blocks](const LaunchArgs& args, cudaStream_t stream) {
    auto* const partial = reinterpret_cast<double*>(args.workspace);
    int64_t done = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const cudaError_t error = LaunchNormPartials(args.input<float>(i), counts[i], partial + done, stream);
      if (error != cudaSuccess) return error;
      done += NormBlocks(counts[i]);
    }
    return LaunchSumPartials(partial, blocks, args.output<double>(0), stream);
  };
  return MakeLaunchKernel(context, launch, static_cast<size_t>(blocks) * sizeof(double));
}

StatusOr<std::unique_ptr<Kernel>> MakeStepControl(const KernelContext& context) {
  const double clip = DecimalValue(context.node.attributes().Float("clip", 0));
  const double multiplier = DecimalValue(context.node.attributes().Float("gradient_multiplier", 1));
  return MakeLaunchKernel(context, [clip, multiplier](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchStepControl({args.input<double>(0), args.output<double>(0), args.output<double>(1),
                              args.output<double>(2), args.output<bool>(3), clip, multiplier},
                             stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeLearningRate(const KernelContext& context) {
  ASSIGN_OR_RETURN(const math::LearningRateOptions options, LearningRateOptionsOf(context));
  return MakeLaunchKernel(context, [options](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchLearningRate(options, args.input<int64_t>(0), args.output<double>(0), stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeAdvanceStep(const KernelContext& context) {
  return MakeLaunchKernel(context, [](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchAdvanceStep(args.input<int64_t>(0), args.input<bool>(1), args.output<int64_t>(0), stream);
  });
}

}  // namespace

void AddStepControlOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("onnxtrain.StepSums", MakeStepSums);
  registry.Add("onnxtrain.SquaredNorm", MakeSquaredNorm);
  registry.Add("onnxtrain.StepControl", MakeStepControl);
  registry.Add("onnxtrain.LearningRate", MakeLearningRate);
  registry.Add("onnxtrain.AdvanceStep", MakeAdvanceStep);
}

}  // namespace onnxtrain
