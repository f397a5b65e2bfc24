// SPDX-License-Identifier: Apache-2.0
// Pools over [N, C, d1, ...]. The gradient of a maximum finds the first largest element of each window again, so that
// no indices have to be kept; that of an average needs the shape of x alone.
//   onnxtrain.MaxPoolGrad (dy, x) <kernel_shape, strides, dilations, pads> -> dx
//   onnxtrain.AveragePoolGrad (dy) <the same, count_include_pad, input_shape> -> dx
#include "graph/gradient.h"
#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/own_op_checks.h"
#include "graph/ops/window.h"

namespace onnxtrain {
namespace {

using Types = StatusOr<std::vector<TensorType>>;
using Kind = AttributeKind;

// dy must be [N, C, ...] with as many axes as x.
void CheckGradientOf(OwnOpChecks& check, const TensorType& dy, const TensorType& x) {
  if (!check.ok()) return;
  check.Demand(x.rank() >= 3 && dy.rank() == x.rank() && dy.dtype == x.dtype && dy.shape[0] == x.shape[0] &&
                   dy.shape[1] == x.shape[1],
               "the gradient " + ToString(dy) + " does not belong to a pool of " + ToString(x));
}

Types InferMaxPoolGradient(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(2, 2);
  check.Outputs(1, 1);
  check.Attributes({{"kernel_shape", Kind::kInts, true},
                    {"strides", Kind::kInts},
                    {"dilations", Kind::kInts},
                    {"pads", Kind::kInts}});
  check.Floating(0, "gradient");
  check.Floating(1, "x");
  RETURN_IF_ERROR(check.status());
  CheckGradientOf(check, context.inputs[0], context.inputs[1]);
  RETURN_IF_ERROR(check.status());
  ASSIGN_OR_RETURN(const Window window, WindowOf(context.attributes, SpatialOf(context.inputs[1].shape),
                                                 context.attributes.Ints("kernel_shape")));
  (void)window;
  return std::vector<TensorType>{context.inputs[1]};
}

Types InferAveragePoolGradient(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(1, 1);
  check.Outputs(1, 1);
  check.Attributes({{"kernel_shape", Kind::kInts, true},
                    {"strides", Kind::kInts},
                    {"dilations", Kind::kInts},
                    {"pads", Kind::kInts},
                    {"count_include_pad", Kind::kInt},
                    {"input_shape", Kind::kInts, true}});
  check.Floating(0, "gradient");
  RETURN_IF_ERROR(check.status());
  const TensorType x{context.inputs[0].dtype, context.attributes.Ints("input_shape")};
  CheckGradientOf(check, context.inputs[0], x);
  RETURN_IF_ERROR(check.status());
  ASSIGN_OR_RETURN(const Window window,
                   WindowOf(context.attributes, SpatialOf(x.shape), context.attributes.Ints("kernel_shape")));
  (void)window;
  return std::vector<TensorType>{x};
}

StatusOr<Attributes> WindowAttributes(const GradientContext& context) {
  const Attributes& attributes = context.attributes();
  ASSIGN_OR_RETURN(const Window window,
                   WindowOf(attributes, SpatialOf(context.input(0)->type().shape), attributes.Ints("kernel_shape")));
  Attributes result;
  SetWindow(window, result);
  return result;
}

Status MaxPoolGradient(GradientContext& context) {
  ASSIGN_OR_RETURN(Attributes attributes, WindowAttributes(context));
  context.SetInputGradient(0, context.build.Op("onnxtrain.MaxPoolGrad", {context.output_gradient(0), context.input(0)},
                                               std::move(attributes)));
  return context.build.status();
}

Status AveragePoolGradient(GradientContext& context) {
  ASSIGN_OR_RETURN(Attributes attributes, WindowAttributes(context));
  attributes.Set("count_include_pad", context.attributes().Int("count_include_pad", 0));
  attributes.Set("input_shape", context.input(0)->type().shape);
  context.SetInputGradient(
      0, context.build.Op("onnxtrain.AveragePoolGrad", {context.output_gradient(0)}, std::move(attributes)));
  return context.build.status();
}

Status GlobalAveragePoolGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  const TensorType& x = context.input(0)->type();
  const double count = static_cast<double>(ElementsOf(SpatialOf(x.shape)));
  Value* share = build.Mul(context.output_gradient(0), build.Scalar(1 / count, x.dtype));
  context.SetInputGradient(0, build.Op("Expand", {share, build.Ints(x.shape)}));
  return build.status();
}

Status GlobalMaxPoolGradient(GradientContext& context) {
  const Shape spatial = SpatialOf(context.input(0)->type().shape);
  context.SetInputGradient(0, context.build.Op("onnxtrain.MaxPoolGrad", {context.output_gradient(0), context.input(0)},
                                               {{"kernel_shape", spatial}}));
  return context.build.status();
}

}  // namespace

void AddPoolOps(OpRegistry& registry) {
  registry.Add({.name = "MaxPool", .gradient = MaxPoolGradient});
  registry.Add({.name = "AveragePool", .gradient = AveragePoolGradient});
  registry.Add({.name = "GlobalAveragePool", .gradient = GlobalAveragePoolGradient});
  registry.Add({.name = "GlobalMaxPool", .gradient = GlobalMaxPoolGradient});
  registry.Add({.name = "onnxtrain.MaxPoolGrad", .infer = InferMaxPoolGradient});
  registry.Add({.name = "onnxtrain.AveragePoolGrad", .infer = InferAveragePoolGradient});
}

}  // namespace onnxtrain
