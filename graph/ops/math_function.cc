// SPDX-License-Identifier: Apache-2.0
// Functions of one number that are not activations, and Pow. All but Pow's are one or two standard nodes.
#include <cmath>
#include <optional>

#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/op_rules.h"

namespace onnxtrain {
namespace {

// dx from (builder, x, y, dy).
using Rule = Value* (*)(GraphBuilder&, Value*, Value*, Value*);

void AddFunction(OpRegistry& registry, const char* name, Rule rule) {
  OpDef def{.name = name, .aliases = InPlaceOfEqualTypes};
  def.gradient = [rule](GradientContext& context) {
    context.SetInputGradient(0, rule(context.build, context.input(0), context.output(0), context.output_gradient(0)));
    return OkStatus();
  };
  registry.Add(std::move(def));
}

// Derivative zero wherever there is one.
void AddStepFunction(OpRegistry& registry, const char* name) {
  registry.Add({.name = name, .aliases = InPlaceOfEqualTypes, .stop_gradient_inputs = {0}});
}

Value* Constant(GraphBuilder& build, double value, const Value* like) {
  return build.Scalar(value, like->type().dtype);
}

// The one value of a constant exponent; absent when it is not constant or has several values.
std::optional<double> ConstantExponent(const Value& exponent) {
  const Tensor* constant = exponent.constant();
  if (constant == nullptr || constant->elements() == 0) return std::nullopt;
  const double first = constant->DoubleAt(0);
  for (int64_t i = 1; i < constant->elements(); ++i) {
    if (constant->DoubleAt(i) != first) return std::nullopt;
  }
  return first;
}

// p * x^(p-1), without a logarithm and without 0 * infinity at x = 0.
Value* PowerDerivative(GraphBuilder& build, Value* x, Value* y, Value* exponent) {
  const std::optional<double> p = ConstantExponent(*exponent);
  if (p == 2.0) return build.Mul(x, Constant(build, 2, x));
  if (p == 3.0) return build.Mul(build.Mul(x, x), Constant(build, 3, x));
  if (p == 0.5) return build.Div(Constant(build, 0.5, x), y);
  Value* power = build.Cast(exponent, x->type().dtype);
  Value* less = build.Sub(power, Constant(build, 1, x));
  Value* slope = build.Mul(power, build.Op("Pow", {x, less}));
  if (p.has_value() && *p != 0) return slope;
  Value* zero = Constant(build, 0, x);
  return build.Op("Where", {build.Op("Equal", {power, zero}), zero, slope});
}

// d x^p / dp = x^p log x, and 0 where x is 0 and p is not negative.
Value* ExponentDerivative(GraphBuilder& build, Value* x, Value* y, Value* exponent) {
  Value* zero = Constant(build, 0, x);
  Value* power = build.Cast(exponent, x->type().dtype);
  Value* at_zero = build.Op("And", {build.Op("Equal", {x, zero}), build.Op("GreaterOrEqual", {power, zero})});
  return build.Op("Where", {at_zero, zero, build.Mul(y, build.Op("Log", {x}))});
}

Status PowGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  Value* x = context.input(0);
  Value* exponent = context.input(1);
  Value* dy = context.output_gradient(0);
  if (context.wanted(0)) {
    Value* each = dy;
    if (ConstantExponent(*exponent) != 1.0) {
      each = build.Mul(dy, PowerDerivative(build, x, context.output(0), exponent));
    }
    context.SetInputGradient(0, build.SumTo(each, x->type().shape));
  }
  if (context.wanted(1)) {
    Value* each = build.Mul(dy, ExponentDerivative(build, x, context.output(0), exponent));
    Value* sum = build.SumTo(each, exponent->type().shape);
    context.SetInputGradient(1, build.Cast(sum, exponent->type().dtype));
  }
  return OkStatus();
}

using V = Value*;
using B = GraphBuilder;

Value* OneMinusSquare(B& build, V x) { return build.Sub(Constant(build, 1, x), build.Mul(x, x)); }
Value* OnePlusSquare(B& build, V x) { return build.Add(Constant(build, 1, x), build.Mul(x, x)); }

void AddExponentials(OpRegistry& registry) {
  AddFunction(registry, "Exp", [](B& build, V, V y, V dy) { return build.Mul(dy, y); });
  AddFunction(registry, "Log", [](B& build, V x, V, V dy) { return build.Div(dy, x); });
  AddFunction(registry, "Sqrt",
              [](B& build, V, V y, V dy) { return build.Div(dy, build.Mul(y, Constant(build, 2, y))); });
  AddFunction(registry, "Reciprocal", [](B& build, V, V y, V dy) { return build.Neg(build.Mul(dy, build.Mul(y, y))); });
  AddFunction(registry, "Neg", [](B& build, V, V, V dy) { return build.Neg(dy); });
  AddFunction(registry, "Abs", [](B& build, V x, V, V dy) { return build.Mul(dy, build.Op("Sign", {x})); });
}

void AddTrigonometry(OpRegistry& registry) {
  AddFunction(registry, "Sin", [](B& build, V x, V, V dy) { return build.Mul(dy, build.Op("Cos", {x})); });
  AddFunction(registry, "Cos", [](B& build, V x, V, V dy) { return build.Neg(build.Mul(dy, build.Op("Sin", {x}))); });
  AddFunction(registry, "Tan", [](B& build, V, V y, V dy) { return build.Mul(dy, OnePlusSquare(build, y)); });
  AddFunction(registry, "Asin",
              [](B& build, V x, V, V dy) { return build.Div(dy, build.Op("Sqrt", {OneMinusSquare(build, x)})); });
  AddFunction(registry, "Acos", [](B& build, V x, V, V dy) {
    return build.Neg(build.Div(dy, build.Op("Sqrt", {OneMinusSquare(build, x)})));
  });
  AddFunction(registry, "Atan", [](B& build, V x, V, V dy) { return build.Div(dy, OnePlusSquare(build, x)); });
}

void AddHyperbolic(OpRegistry& registry) {
  AddFunction(registry, "Sinh", [](B& build, V x, V, V dy) { return build.Mul(dy, build.Op("Cosh", {x})); });
  AddFunction(registry, "Cosh", [](B& build, V x, V, V dy) { return build.Mul(dy, build.Op("Sinh", {x})); });
  AddFunction(registry, "Asinh",
              [](B& build, V x, V, V dy) { return build.Div(dy, build.Op("Sqrt", {OnePlusSquare(build, x)})); });
  AddFunction(registry, "Acosh", [](B& build, V x, V, V dy) {
    return build.Div(dy, build.Op("Sqrt", {build.Neg(OneMinusSquare(build, x))}));
  });
  AddFunction(registry, "Atanh", [](B& build, V x, V, V dy) { return build.Div(dy, OneMinusSquare(build, x)); });
}

}  // namespace

void AddMathFunctionOps(OpRegistry& registry) {
  AddExponentials(registry);
  AddTrigonometry(registry);
  AddHyperbolic(registry);
  for (const char* name : {"Floor", "Ceil", "Round", "Sign"}) AddStepFunction(registry, name);
  registry.Add({.name = "Pow", .gradient = PowGradient, .aliases = InPlaceOfEqualTypes});
}

}  // namespace onnxtrain
