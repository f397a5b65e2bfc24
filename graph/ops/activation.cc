// SPDX-License-Identifier: Apache-2.0
// Activations: one input, one output of its type, one fused gradient operator each. Formulas:
// runtime/math/activation.h.
#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/op_rules.h"
#include "graph/ops/own_op_checks.h"

namespace onnxtrain {
namespace {

// What the gradient operator reads beside dy: reading y lets the forward run in place.
enum class GradientReads { kInput, kOutput };

// The schema knows float alone; a double run needs both.
StatusOr<std::vector<TensorType>> InferCelu(const InferContext& context) {
  OwnOpChecks checks(context);
  checks.Inputs(1, 1);
  checks.Outputs(1, 1);
  checks.Attributes({{"alpha", AttributeKind::kFloat}});
  checks.Floating(0, "X");
  RETURN_IF_ERROR(checks.status());
  return context.inputs;
}

// onnxtrain.<name>Grad (x or y, dy) -> dx, with the attributes of the operator itself.
void AddActivation(OpRegistry& registry, const std::string& name, GradientReads reads) {
  const std::string gradient_name = std::string(kOwnPrefix) + name + "Grad";
  OpDef forward{.name = name, .aliases = InPlaceOfEqualTypes};
  if (name == "Celu") forward.infer = InferCelu;
  forward.gradient = [gradient_name, reads](GradientContext& context) {
    Value* point = reads == GradientReads::kInput ? context.input(0) : context.output(0);
    context.SetInputGradient(
        0, context.build.Op(gradient_name, {point, context.output_gradient(0)}, context.attributes()));
    return OkStatus();
  };
  registry.Add(std::move(forward));
  registry.Add({.name = gradient_name, .infer = TypeOfPointwiseGradient, .aliases = InPlaceOfEqualTypes});
}

Status CheckPRelu(const InferContext& context, const std::vector<TensorType>&) {
  const Shape& x = context.inputs[0].shape;
  const Shape& slope = context.inputs[1].shape;
  bool fits = slope.size() <= x.size();
  for (size_t i = 0; fits && i < slope.size(); ++i) {
    fits = slope[i] == 1 || slope[i] == x[i + x.size() - slope.size()];
  }
  return fits ? OkStatus() : InvalidModelError("slope " + ToString(slope) + " cannot be broadcast to " + ToString(x));
}

// y = x where x > 0, slope * x elsewhere; slope is broadcast to x. At 0 the slope side counts, as in PyTorch.
Status PReluGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  Value* x = context.input(0);
  Value* slope = context.input(1);
  Value* dy = context.output_gradient(0);
  Value* zero = build.Scalar(0, x->type().dtype);
  Value* positive = build.Op("Greater", {x, zero});
  if (context.wanted(0)) context.SetInputGradient(0, build.Op("Where", {positive, dy, build.Mul(dy, slope)}));
  if (context.wanted(1)) {
    Value* each = build.Op("Where", {positive, zero, build.Mul(dy, x)});
    context.SetInputGradient(1, build.SumTo(each, slope->type().shape));
  }
  return OkStatus();
}

}  // namespace

void AddActivationOps(OpRegistry& registry) {
  for (const char* name : {"Relu", "Sigmoid", "Tanh"}) AddActivation(registry, name, GradientReads::kOutput);
  for (const char* name : {"Celu", "Elu", "Erf", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Selu",
                           "Softplus", "Softsign", "Swish", "ThresholdedRelu"}) {
    AddActivation(registry, name, GradientReads::kInput);
  }
  registry.Add(
      {.name = "PRelu", .infer = SchemaThen(CheckPRelu), .gradient = PReluGradient, .aliases = InPlaceOfEqualTypes});
}

}  // namespace onnxtrain
