// SPDX-License-Identifier: Apache-2.0
// Activations and their gradient operators: one vector loop each.
#include "graph/op_registry.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/unary_kernel.h"
#include "runtime/cpu/pieces.h"

namespace onnxtrain {
namespace {

struct ActivationEntry {
  const char* op;
  UnaryFunction function;
  int64_t grain = kFunctionGrain;
  const char* beta_name = "beta";
  double alpha = 0;  // the schema's defaults, Selu's in the precision of its paper
  double beta = 0;
};

constexpr ActivationEntry kActivations[] = {
    {"Celu", UnaryFunction::kCelu, kFunctionGrain, "beta", 1.0},
    {"Elu", UnaryFunction::kElu, kFunctionGrain, "beta", 1.0},
    {"Erf", UnaryFunction::kErf},
    {"HardSigmoid", UnaryFunction::kHardSigmoid, kMoveGrain, "beta", 0.2, 0.5},
    {"HardSwish", UnaryFunction::kHardSwish, kMoveGrain},
    {"LeakyRelu", UnaryFunction::kLeakyRelu, kMoveGrain, "beta", 0.01},
    {"Mish", UnaryFunction::kMish},
    {"Relu", UnaryFunction::kRelu, kMoveGrain},
    {"Selu", UnaryFunction::kSelu, kFunctionGrain, "gamma", 1.6732632423543772, 1.0507009873554805},
    {"Sigmoid", UnaryFunction::kSigmoid},
    {"Softplus", UnaryFunction::kSoftplus},
    {"Softsign", UnaryFunction::kSoftsign, kMoveGrain},
    {"Swish", UnaryFunction::kSwish, kFunctionGrain, "beta", 1.0},
    {"Tanh", UnaryFunction::kTanh},
    {"ThresholdedRelu", UnaryFunction::kThresholdedRelu, kMoveGrain, "beta", 1.0},
};

double FloatOr(const Attributes& attributes, const char* name, double fallback) {
  return attributes.Has(name) ? DecimalValue(attributes.Float(name, 0)) : fallback;
}

UnaryKernelOptions OptionsOf(const ActivationEntry& entry, const Attributes& attributes) {
  return {entry.function, FloatOr(attributes, "alpha", entry.alpha), FloatOr(attributes, entry.beta_name, entry.beta),
          entry.grain};
}

UnaryKernelOptions GeluOptions(const KernelContext& context) {
  const bool tanh = context.node.attributes().String("approximate", "none") == "tanh";
  return {tanh ? UnaryFunction::kGeluTanh : UnaryFunction::kGeluErf, 0, 0, kFunctionGrain};
}

}  // namespace

void AddActivationKernels(KernelRegistry& registry) {
  for (const ActivationEntry& entry : kActivations) {
    registry.Add(entry.op, [entry](const KernelContext& context) {
      return MakeUnaryKernel(context, OptionsOf(entry, context.node.attributes()));
    });
    registry.Add(std::string(kOwnPrefix) + entry.op + "Grad", [entry](const KernelContext& context) {
      return MakeUnaryGradientKernel(context, OptionsOf(entry, context.node.attributes()));
    });
  }
  registry.Add("Gelu", [](const KernelContext& context) { return MakeUnaryKernel(context, GeluOptions(context)); });
  registry.Add("onnxtrain.GeluGrad",
               [](const KernelContext& context) { return MakeUnaryGradientKernel(context, GeluOptions(context)); });
}

}  // namespace onnxtrain
