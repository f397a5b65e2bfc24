// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, and CumSum. Canonical: axes are a constant input; absent or empty means all, or none with
// noop_with_empty_axes.
#include <algorithm>

#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/op_rules.h"
#include "graph/ops/own_op_checks.h"
#include "graph/ops/reduction_axes.h"

namespace onnxtrain {
namespace {

// A reduction that is being differentiated, with everything of keepdims shape so that it broadcasts against x.
struct Reduction {
  GraphBuilder& build;
  Value* x;
  Value* y;   // [kept]
  Value* dy;  // [kept]
  std::vector<int64_t> axes;
  int64_t count;  // elements of x in one of y

  Value* Scalar(double value) const { return build.Scalar(value, x->type().dtype); }
  Value* Stretch(Value* kept) const {
    if (!build.ok() || kept->type().shape == x->type().shape) return kept;
    return build.Op("Expand", {kept, build.Ints(x->type().shape)});
  }
};

StatusOr<Reduction> ReductionOf(GradientContext& context) {
  Reduction reduction{context.build, context.input(0), context.output(0), context.output_gradient(0), {}, 1};
  ASSIGN_OR_RETURN(reduction.axes, ReducedAxes(context.node()));
  Shape kept = reduction.x->type().shape;
  for (int64_t axis : reduction.axes) {
    reduction.count *= kept[static_cast<size_t>(axis)];
    kept[static_cast<size_t>(axis)] = 1;
  }
  reduction.y = context.build.Reshape(reduction.y, kept);
  reduction.dy = context.build.Reshape(reduction.dy, kept);
  return reduction;
}

using Rule = Value* (*)(const Reduction&);

void AddReduction(OpRegistry& registry, const char* name, Rule rule) {
  OpDef def{.name = name, .lift = MoveAttributeToInput(18, "axes", 1), .stop_gradient_inputs = {1}};
  def.gradient = [rule](GradientContext& context) -> Status {
    ASSIGN_OR_RETURN(Reduction reduction, ReductionOf(context));
    RETURN_IF_ERROR(context.build.status());
    context.SetInputGradient(0, rule(reduction));
    return OkStatus();
  };
  registry.Add(std::move(def));
}

// Ties share the gradient evenly.
Value* ExtremumRule(const Reduction& r) {
  Value* selected = r.build.Op("Equal", {r.x, r.y});
  Value* ties = r.build.ReduceSum(r.build.Cast(selected, r.x->type().dtype), r.axes, /*keepdims=*/true);
  return r.build.Op("Where", {selected, r.build.Div(r.dy, ties), r.Scalar(0)});
}

// x / |x|, and 0 where the norm is 0.
Value* L2Rule(const Reduction& r) {
  Value* zero = r.Scalar(0);
  Value* factor = r.build.Op("Where", {r.build.Op("Equal", {r.y, zero}), zero, r.build.Div(r.dy, r.y)});
  return r.build.Mul(r.x, factor);
}

void AddReductions(OpRegistry& registry) {
  AddReduction(registry, "ReduceSum", [](const Reduction& r) { return r.Stretch(r.dy); });
  AddReduction(registry, "ReduceMean", [](const Reduction& r) {
    return r.Stretch(r.build.Mul(r.dy, r.Scalar(1.0 / static_cast<double>(std::max<int64_t>(r.count, 1)))));
  });
  AddReduction(registry, "ReduceSumSquare",
               [](const Reduction& r) { return r.build.Mul(r.x, r.build.Mul(r.dy, r.Scalar(2))); });
  AddReduction(registry, "ReduceL1", [](const Reduction& r) { return r.build.Mul(r.build.Op("Sign", {r.x}), r.dy); });
  AddReduction(registry, "ReduceL2", L2Rule);
  AddReduction(registry, "ReduceLogSum",
               [](const Reduction& r) { return r.Stretch(r.build.Div(r.dy, r.build.Op("Exp", {r.y}))); });
  AddReduction(registry, "ReduceLogSumExp",
               [](const Reduction& r) { return r.build.Mul(r.dy, r.build.Op("Exp", {r.build.Sub(r.x, r.y)})); });
  AddReduction(registry, "ReduceMax", ExtremumRule);
  AddReduction(registry, "ReduceMin", ExtremumRule);
  AddReduction(registry, "ReduceProd", [](const Reduction& r) {
    return r.build.Op("onnxtrain.ReduceProdGrad", {r.x, r.dy}, {{"axes", r.axes}});
  });
}

// (x, dy) <axes>: ascending axes of x; dy has size 1 along them.
StatusOr<std::vector<TensorType>> InferReduceProdGrad(const InferContext& context) {
  OwnOpChecks checks(context);
  checks.Inputs(2, 2);
  checks.Outputs(1, 1);
  checks.Attributes({{"axes", AttributeKind::kInts, true}});
  checks.Floating(0, "x");
  checks.Floating(1, "dy");
  RETURN_IF_ERROR(checks.status());
  const TensorType& x = context.inputs[0];
  Shape kept = x.shape;
  int64_t before = -1;
  for (int64_t axis : context.attributes.Ints("axes")) {
    if (axis <= before || axis >= x.rank()) return InvalidModelError("axes must ascend and lie within x");
    kept[static_cast<size_t>(axis)] = 1;
    before = axis;
  }
  checks.Demand(context.inputs[1] == TensorType{x.dtype, kept}, "dy must be " + ToString(TensorType{x.dtype, kept}));
  RETURN_IF_ERROR(checks.status());
  return std::vector<TensorType>{x};
}

// dL/dx_i sums the dy of all later elements: a cumulative sum the other way.
Status CumSumGradient(GradientContext& context) {
  Attributes attributes = context.attributes();
  attributes.Set("reverse", int64_t{1} - attributes.Int("reverse", 0));
  context.SetInputGradient(
      0, context.build.Op("CumSum", {context.output_gradient(0), context.input(1)}, std::move(attributes)));
  return OkStatus();
}

}  // namespace

void AddReductionOps(OpRegistry& registry) {
  AddReductions(registry);
  registry.Add({.name = "onnxtrain.ReduceProdGrad", .infer = InferReduceProdGrad});
  registry.Add({.name = "CumSum", .gradient = CumSumGradient, .stop_gradient_inputs = {1}});
  for (const char* name : {"ArgMax", "ArgMin"}) registry.Add({.name = name});
}

}  // namespace onnxtrain
