// SPDX-License-Identifier: Apache-2.0
// SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss and their gradients, and the count of labels.
#include "cuda_ops/kernels/loss.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "graph/attributes.h"

namespace onnxtrain {
namespace {

LossReduction ReductionOf(const Attributes& attributes) {
  const std::string name = attributes.String("reduction", "mean");
  return name == "none" ? LossReduction::kNone : name == "sum" ? LossReduction::kSum : LossReduction::kMean;
}

// The scores are the node's input `first`, labels and weights follow.
StatusOr<ClassLossArguments> Constants(const KernelContext& context, size_t first, bool softmax) {
  ClassLossArguments a;
  const TensorType& scores = context.input_type(first);
  const std::span<const int64_t> sizes(scores.shape);
  a.outer = sizes[0];
  a.classes = sizes[1];
  a.inner = ElementsOf(sizes.subspan(2));
  a.dtype = scores.dtype;
  a.label_dtype = context.input_type(first + 1).dtype;
  const Attributes& attributes = context.node.attributes();
  a.ignores = attributes.Has("ignore_index");
  a.ignore_index = attributes.Int("ignore_index", 0);
  a.smoothing = attributes.Float("label_smoothing", 0);
  a.softmax = softmax;
  a.reduction = ReductionOf(attributes);
  a.node_index = context.node_index;
  const Value* weights = context.node.input(first + 2);
  const bool types_fit = IsDeviceFloat(a.dtype) && IsDeviceInteger(a.label_dtype) &&
                         (weights == nullptr || weights->type().dtype == DType::kFloat) &&
                         context.output_type(0).dtype == a.dtype;
  if (!types_fit) return UnsupportedTypes(context);
  return a;
}

size_t WorkspaceBytes(const ClassLossArguments& a) {
  return static_cast<size_t>(ClassLossDoubles(a.outer * a.inner)) * sizeof(double);
}

StatusOr<std::unique_ptr<Kernel>> MakeForward(const KernelContext& context, bool softmax) {
  ASSIGN_OR_RETURN(const ClassLossArguments constants, Constants(context, 0, softmax));
  const auto launch = [constants](const LaunchArgs& args, cudaStream_t stream) {
    ClassLossArguments a = constants;
    a.scores = args.inputs[0];
    a.labels = args.inputs[1];
    a.weights = args.input<float>(2);
    a.status_word = args.status_word;
    a.loss = args.outputs[0];
    a.log_probability = args.output<std::byte>(1);
    a.workspace = reinterpret_cast<double*>(args.workspace);
    return LaunchClassLoss(a, stream);
  };
  return MakeLaunchKernel(context, launch, WorkspaceBytes(constants));
}

StatusOr<std::unique_ptr<Kernel>> MakeGradient(const KernelContext& context, bool softmax) {
  ASSIGN_OR_RETURN(const ClassLossArguments constants, Constants(context, 1, softmax));
  if (context.input_type(0).dtype != constants.dtype) return UnsupportedTypes(context);
  const auto launch = [constants](const LaunchArgs& args, cudaStream_t stream) {
    ClassLossArguments a = constants;
    a.dloss = args.inputs[0];
    a.scores = args.inputs[1];
    a.labels = args.inputs[2];
    a.weights = args.input<float>(3);
    a.status_word = args.status_word;
    a.gradient = args.outputs[0];
    a.workspace = reinterpret_cast<double*>(args.workspace);
    return LaunchClassLossGradient(a, stream);
  };
  return MakeLaunchKernel(context, launch, WorkspaceBytes(constants));
}

StatusOr<std::unique_ptr<Kernel>> MakeCountLabels(const KernelContext& context) {
  ClassLossArguments constants;
  constants.outer = context.input_type(0).elements();
  const Value* weights = context.node.input(1);
  constants.classes = weights == nullptr ? INT64_MAX : weights->type().elements();
  constants.label_dtype = context.input_type(0).dtype;
  constants.ignores = context.node.attributes().Has("ignore_index");
  constants.ignore_index = context.node.attributes().Int("ignore_index", 0);
  const bool types_fit = IsDeviceInteger(constants.label_dtype) && context.output_type(0).dtype == DType::kFloat &&
                         (weights == nullptr || weights->type().dtype == DType::kFloat);
  if (!types_fit) return UnsupportedTypes(context);
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    ClassLossArguments a = constants;
    a.labels = args.inputs[0];
    a.weights = args.input<float>(1);
    return LaunchCountLabels(a, args.output<float>(0), stream);
  });
}

void Add(KernelRegistry& registry, const std::string& op, bool softmax) {
  registry.Add(op, [softmax](const KernelContext& context) { return MakeForward(context, softmax); });
}
void AddGradient(KernelRegistry& registry, const std::string& op, bool softmax) {
  registry.Add(op, [softmax](const KernelContext& context) { return MakeGradient(context, softmax); });
}

}  // namespace

void AddLossOps(KernelRegistry& registry, const CudaContext&) {
  Add(registry, "SoftmaxCrossEntropyLoss", true);
  Add(registry, "onnxtrain.SoftmaxCrossEntropyLoss", true);
  Add(registry, "NegativeLogLikelihoodLoss", false);
  AddGradient(registry, "onnxtrain.SoftmaxCrossEntropyLossGrad", true);
  AddGradient(registry, "onnxtrain.NegativeLogLikelihoodLossGrad", false);
  registry.Add("onnxtrain.CountLabels", MakeCountLabels);
}

}  // namespace onnxtrain
