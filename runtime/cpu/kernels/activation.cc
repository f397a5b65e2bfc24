// SPDX-License-Identifier: Apache-2.0
// Activations and their gradient operators: one vector loop each.
#include "graph/op_registry.h"
#include "runtime/activation_ops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/unary_kernel.h"
#include "runtime/cpu/pieces.h"

namespace onnxtrain {
namespace {

int64_t GrainOf(UnaryFunction function) {
  switch (function) {
    case UnaryFunction::kHardSigmoid:
    case UnaryFunction::kHardSwish:
    case UnaryFunction::kLeakyRelu:
    case UnaryFunction::kRelu:
    case UnaryFunction::kSoftsign:
    case UnaryFunction::kThresholdedRelu: return kMoveGrain;
    default: return kFunctionGrain;
  }
}

UnaryKernelOptions OptionsOf(const Activation& activation) {
  return {activation.function, activation.alpha, activation.beta, GrainOf(activation.function)};
}

}  // namespace

void AddActivationKernels(KernelRegistry& registry) {
  for (const std::string& op : ActivationOps()) {
    registry.Add(op, [op](const KernelContext& context) {
      return MakeUnaryKernel(context, OptionsOf(ActivationOf(op, context.node.attributes())));
    });
    registry.Add(std::string(kOwnPrefix) + op + "Grad", [op](const KernelContext& context) {
      return MakeUnaryGradientKernel(context, OptionsOf(ActivationOf(op, context.node.attributes())));
    });
  }
}

}  // namespace onnxtrain
