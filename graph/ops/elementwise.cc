// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparison, logic, selection and conversion, element by element with NumPy's broadcasting.
#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/op_rules.h"
#include "graph/ops/own_op_checks.h"

namespace onnxtrain {
namespace {

// Sets dL/d input[index], summed over the axes along which the input was broadcast.
void SetBroadcast(GradientContext& context, size_t index, Value* gradient) {
  if (!context.build.ok()) return;
  context.SetInputGradient(index, context.build.SumTo(gradient, context.input(index)->type().shape));
}

Status AddGradient(GradientContext& context) {
  for (size_t i : {0, 1}) {
    if (context.wanted(i)) SetBroadcast(context, i, context.output_gradient(0));
  }
  return OkStatus();
}

Status SubGradient(GradientContext& context) {
  Value* dy = context.output_gradient(0);
  if (context.wanted(0)) SetBroadcast(context, 0, dy);
  // Summed first: the negation is then as small as the input.
  if (context.wanted(1)) {
    Value* sum = context.build.SumTo(dy, context.input(1)->type().shape);
    context.SetInputGradient(1, context.build.Neg(sum));
  }
  return OkStatus();
}

Status MulGradient(GradientContext& context) {
  Value* dy = context.output_gradient(0);
  for (size_t i : {0, 1}) {
    if (context.wanted(i)) SetBroadcast(context, i, context.build.Mul(dy, context.input(1 - i)));
  }
  return OkStatus();
}

Status DivGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  Value* quotient = build.Div(context.output_gradient(0), context.input(1));
  if (context.wanted(0)) SetBroadcast(context, 0, quotient);
  if (context.wanted(1)) {
    Value* sum = build.SumTo(build.Mul(quotient, context.output(0)), context.input(1)->type().shape);
    context.SetInputGradient(1, build.Neg(sum));
  }
  return OkStatus();
}

// d max / d x_i = 1 / (number of equal largest) where x_i is one of them; NaN is larger than all and passes nothing.
Status ExtremumGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  Value* dy = context.output_gradient(0);
  Value* y = context.output(0);
  const DType dtype = y->type().dtype;
  std::vector<Value*> selected;
  Value* ties = nullptr;
  for (size_t i = 0; i < context.node().inputs().size(); ++i) {
    selected.push_back(build.Op("Equal", {context.input(i), y}));
    Value* one = build.Cast(selected.back(), dtype);
    ties = ties == nullptr ? one : build.Add(ties, one);
  }
  Value* share = selected.size() == 1 ? dy : build.Div(dy, ties);
  Value* zero = build.Scalar(0, dtype);
  for (size_t i = 0; i < selected.size(); ++i) {
    if (context.wanted(i)) SetBroadcast(context, i, build.Op("Where", {selected[i], share, zero}));
  }
  return OkStatus();
}

Status SumGradient(GradientContext& context) {
  Value* dy = context.output_gradient(0);
  for (size_t i = 0; i < context.node().inputs().size(); ++i) {
    if (context.wanted(i)) SetBroadcast(context, i, dy);
  }
  return OkStatus();
}

Status MeanGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  const size_t count = context.node().inputs().size();
  Value* dy = context.output_gradient(0);
  Value* share = build.Mul(dy, build.Scalar(1.0 / static_cast<double>(count), dy->type().dtype));
  for (size_t i = 0; i < count; ++i) {
    if (context.wanted(i)) SetBroadcast(context, i, share);
  }
  return OkStatus();
}

// With fmod = 1: mod = a - trunc(a / b) * b, so d/db = -trunc(a / b) = -(a - mod) / b.
Status ModGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  Value* dy = context.output_gradient(0);
  if (context.wanted(0)) SetBroadcast(context, 0, dy);
  if (context.wanted(1)) {
    Value* quotient = build.Div(build.Sub(context.output(0), context.input(0)), context.input(1));
    SetBroadcast(context, 1, build.Mul(dy, quotient));
  }
  return OkStatus();
}

Status WhereGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  Value* condition = context.input(0);
  Value* dy = context.output_gradient(0);
  Value* zero = build.Scalar(0, dy->type().dtype);
  if (context.wanted(1)) SetBroadcast(context, 1, build.Op("Where", {condition, dy, zero}));
  if (context.wanted(2)) SetBroadcast(context, 2, build.Op("Where", {condition, zero, dy}));
  return OkStatus();
}

Status CastGradient(GradientContext& context) {
  context.SetInputGradient(0, context.build.Cast(context.output_gradient(0), context.input(0)->type().dtype));
  return OkStatus();
}

Status LiftCastLike(LiftContext& lift) {
  if (!lift.HasInput(0) || !lift.HasInput(1)) return InvalidModelError("CastLike needs two inputs");
  lift.node.op = "Cast";
  lift.node.attributes.Set("to", static_cast<int64_t>(lift.node.inputs[1]->type().dtype));
  lift.node.inputs.resize(1);
  return OkStatus();
}

// Before 11 the bounds were float attributes whose defaults, the largest finite numbers, meant no bound.
Status LiftClip(LiftContext& lift) {
  if (lift.opset() >= 11) return OkStatus();
  const DType dtype = lift.node.inputs.at(0)->type().dtype;
  lift.node.inputs.resize(1);
  const char* const names[] = {"min", "max"};
  for (size_t i = 0; i < 2; ++i) {
    if (!lift.node.attributes.Has(names[i])) continue;
    lift.node.inputs.resize(i + 2, nullptr);
    lift.node.inputs[i + 1] = lift.build.Scalar(DecimalValue(lift.node.attributes.Float(names[i], 0)), dtype);
    lift.node.attributes.Erase(names[i]);
  }
  return OkStatus();
}

Status CheckClip(const InferContext& context, const std::vector<TensorType>&) {
  for (size_t i = 1; i < context.inputs.size(); ++i) {
    if (!context.inputs[i].known() || context.inputs[i].elements() == 1) continue;
    return InvalidModelError("input " + std::to_string(i) + " must be a scalar, found " + ToString(context.inputs[i]));
  }
  return OkStatus();
}

StatusOr<std::vector<TensorType>> InferClipGrad(const InferContext& context) {
  OwnOpChecks checks(context);
  checks.Inputs(2, 4);
  checks.Outputs(1, 1);
  checks.Floating(0, "x");
  if (checks.ok()) checks.Type(1, "dy", context.inputs[0]);
  for (size_t i = 2; i < context.inputs.size(); ++i) {
    if (!checks.ok() || !context.inputs[i].known()) continue;
    checks.OneElement(i, "bound");
    checks.Demand(context.inputs[i].dtype == context.inputs[0].dtype, "bounds must have the element type of x");
  }
  RETURN_IF_ERROR(checks.status());
  return std::vector<TensorType>{context.inputs[0]};
}

// onnxtrain.ClipGrad (x, dy, min, max): dy where x is strictly inside.
Status ClipGradient(GradientContext& context) {
  std::vector<Value*> inputs{context.input(0), context.output_gradient(0)};
  for (size_t i : {1, 2}) inputs.push_back(context.input(i));
  while (inputs.back() == nullptr) inputs.pop_back();
  context.SetInputGradient(0, inputs.size() == 2 ? inputs[1] : context.build.Op("onnxtrain.ClipGrad", inputs));
  return OkStatus();
}

// The kernel folds operands into the output from the left: only the first two have been read when it writes.
std::vector<AliasRule> InPlaceOfFirstTwo(const Node& node) {
  std::vector<AliasRule> rules = InPlaceOfEqualTypes(node);
  std::erase_if(rules, [](const AliasRule& rule) { return rule.input > 1; });
  return rules;
}

void AddBinary(OpRegistry& registry, const char* name, GradientFn gradient) {
  registry.Add({.name = name, .gradient = std::move(gradient), .aliases = InPlaceOfFirstTwo});
}

void AddWithoutGradient(OpRegistry& registry, const char* name) {
  registry.Add({.name = name, .aliases = InPlaceOfEqualTypes});
}

}  // namespace

void AddElementwiseOps(OpRegistry& registry) {
  AddBinary(registry, "Add", AddGradient);
  AddBinary(registry, "Sub", SubGradient);
  AddBinary(registry, "Mul", MulGradient);
  AddBinary(registry, "Div", DivGradient);
  AddBinary(registry, "Mod", ModGradient);
  AddBinary(registry, "Max", ExtremumGradient);
  AddBinary(registry, "Min", ExtremumGradient);
  AddBinary(registry, "Sum", SumGradient);
  AddBinary(registry, "Mean", MeanGradient);
  for (const char* name : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not",
                           "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift", "IsNaN", "IsInf"}) {
    AddWithoutGradient(registry, name);
  }
  registry.Add({.name = "Where", .gradient = WhereGradient, .aliases = InPlaceOfEqualTypes});
  registry.Add({.name = "Cast", .gradient = CastGradient});
  registry.Add({.name = "CastLike", .lift = LiftCastLike});
  registry.Add({.name = "Clip",
                .lift = LiftClip,
                .infer = SchemaThen(CheckClip),
                .gradient = ClipGradient,
                .aliases = InPlaceOfEqualTypes,
                .stop_gradient_inputs = {1, 2}});
  registry.Add({.name = "onnxtrain.ClipGrad", .infer = InferClipGrad, .aliases = InPlaceOfEqualTypes});
}

}  // namespace onnxtrain
