// SPDX-License-Identifier: Apache-2.0
// One launch a segment: there are as many as parameter groups meet a shard, mostly two.
#include "cuda_ops/kernels/optimizer.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "graph/attributes.h"
#include "runtime/optimizer_segments.h"

namespace onnxtrain {
namespace {

// What of the arguments is known when the kernel is made.
OptimizerArguments Constants(OptimizerRule rule, const Attributes& attributes) {
  OptimizerArguments a;
  const auto value = [&](const char* name, float fallback) { return DecimalValue(attributes.Float(name, fallback)); };
  switch (rule) {
    case OptimizerRule::kSgd:
      a.beta1 = value("momentum", 0);
      a.nesterov = attributes.Int("nesterov", 0) != 0;
      break;
    case OptimizerRule::kAdam:
    case OptimizerRule::kAdamW:
      a.beta1 = value("beta1", 0.9f);
      a.beta2 = value("beta2", 0.999f);
      a.epsilon = value("epsilon", 1e-8f);
      break;
    case OptimizerRule::kAdagrad:
      a.epsilon = value("epsilon", 1e-10f);
      break;
    case OptimizerRule::kLion:
      a.beta1 = value("beta1", 0.9f);
      a.beta2 = value("beta2", 0.99f);
      break;
  }
  return a;
}

template <typename T>
T* At(T* pointer, int64_t offset) {
  return pointer == nullptr ? nullptr : pointer + offset;
}

template <OptimizerRule kRule>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context) {
  if (context.input_type(0).dtype != DType::kFloat || context.input_type(1).dtype != DType::kFloat) {
    return UnsupportedTypes(context);
  }
  ASSIGN_OR_RETURN(const std::vector<OptimizerSegment> segments, OptimizerSegmentsOf(context));
  const OptimizerArguments constants = Constants(kRule, context.node.attributes());
  return MakeLaunchKernel(context, [segments, constants](const LaunchArgs& args, cudaStream_t stream) {
    constexpr bool kTwo = kRule == OptimizerRule::kAdam || kRule == OptimizerRule::kAdamW;
    constexpr size_t kScalars = kTwo ? 4 : 3;
    for (const OptimizerSegment& segment : segments) {
      OptimizerArguments a = constants;
      a.weight = args.input<float>(0) + segment.begin;
      a.gradient = args.input<float>(1) + segment.begin;
      a.state1 = At(args.input<float>(2), segment.begin);
      a.state2 = kTwo ? At(args.input<float>(3), segment.begin) : nullptr;
      a.weight_new = args.output<float>(0) + segment.begin;
      a.state1_new = At(args.output<float>(1), segment.begin);
      a.state2_new = kTwo ? At(args.output<float>(2), segment.begin) : nullptr;
      a.count = segment.end - segment.begin;
      a.learning_rate = args.input<double>(kScalars);
      a.grad_scale = args.input<double>(kScalars + 1);
      a.step = args.input<int64_t>(kScalars + 2);
      a.apply = args.input<bool>(kScalars + 3);
      a.learning_rate_multiplier = segment.lr_multiplier;
      a.weight_decay = segment.weight_decay;
      if (const cudaError_t error = LaunchOptimizer(kRule, a, stream); error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

}  // namespace

void AddOptimizerOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("onnxtrain.SGD", Make<OptimizerRule::kSgd>);
  registry.Add("onnxtrain.Adam", Make<OptimizerRule::kAdam>);
  registry.Add("onnxtrain.AdamW", Make<OptimizerRule::kAdamW>);
  registry.Add("onnxtrain.Adagrad", Make<OptimizerRule::kAdagrad>);
  registry.Add("onnxtrain.Lion", Make<OptimizerRule::kLion>);
}

}  // namespace onnxtrain
