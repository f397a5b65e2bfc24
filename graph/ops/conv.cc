// SPDX-License-Identifier: Apache-2.0
// Convolutions. Gradients are operators of their own; that of the input is also what ConvTranspose computes, which
// lifting therefore writes as it:
//   onnxtrain.ConvInputGrad (dy, w) <strides, dilations, pads, group, input_shape> -> dx
//   onnxtrain.ConvWeightGrad (dy, x) <kernel_shape, strides, dilations, pads, group> -> dw, [dbias]
#include <algorithm>

#include "graph/gradient.h"
#include "graph/lift.h"
#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/own_op_checks.h"
#include "graph/ops/window.h"

namespace onnxtrain {
namespace {

using Types = StatusOr<std::vector<TensorType>>;
using Kind = AttributeKind;

// What a convolution of x with windows gives along its spatial axes.
Shape OutputSpatial(const Shape& spatial, const Window& window) {
  Shape result;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t room = spatial[i] + window.pads_begin[i] + window.pads_end[i] - window.extent(i);
    result.push_back(room < 0 ? 0 : room / window.strides[i] + 1);
  }
  return result;
}

// dy [N, M, ...] must be what a convolution of x [N, C, ...] with `filters` filters gives.
void CheckConvolution(OwnOpChecks& check, const TensorType& dy, const TensorType& x, int64_t group, int64_t filters,
                      const Window& window) {
  check.Demand(group >= 1 && x.rank() == dy.rank() && x.shape[0] == dy.shape[0] && x.shape[1] % group == 0 &&
                   dy.shape[1] % group == 0 && dy.shape[1] == filters &&
                   SpatialOf(dy.shape) == OutputSpatial(SpatialOf(x.shape), window),
               "the gradient " + ToString(dy) + " does not belong to a convolution of " + ToString(x));
}

Types InferInputGradient(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(2, 2);
  check.Outputs(1, 1);
  check.Attributes({{"strides", Kind::kInts},
                    {"dilations", Kind::kInts},
                    {"pads", Kind::kInts},
                    {"group", Kind::kInt},
                    {"input_shape", Kind::kInts, true}});
  check.Floating(0, "gradient");
  check.Floating(1, "weight");
  RETURN_IF_ERROR(check.status());
  const TensorType& dy = context.inputs[0];
  const TensorType& w = context.inputs[1];
  const TensorType x{dy.dtype, context.attributes.Ints("input_shape")};
  const int64_t group = context.attributes.Int("group", 1);
  check.Demand(x.rank() >= 3 && w.rank() == x.rank() && w.dtype == dy.dtype,
               "x, dy and weight must have equal rank and type");
  RETURN_IF_ERROR(check.status());
  ASSIGN_OR_RETURN(const Window window, WindowOf(context.attributes, SpatialOf(x.shape), SpatialOf(w.shape)));
  check.Demand(w.shape[1] * group == x.shape[1], "the weight " + ToString(w) + " does not take " + ToString(x));
  CheckConvolution(check, dy, x, group, w.shape[0], window);
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{x};
}

Types InferWeightGradient(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(2, 2);
  check.Outputs(1, 2);
  check.Attributes({{"kernel_shape", Kind::kInts, true},
                    {"strides", Kind::kInts},
                    {"dilations", Kind::kInts},
                    {"pads", Kind::kInts},
                    {"group", Kind::kInt}});
  check.Floating(0, "gradient");
  check.Floating(1, "x");
  RETURN_IF_ERROR(check.status());
  const TensorType& dy = context.inputs[0];
  const TensorType& x = context.inputs[1];
  const int64_t group = context.attributes.Int("group", 1);
  check.Demand(x.rank() >= 3 && dy.rank() == x.rank() && x.dtype == dy.dtype, "x and dy must have equal rank and type");
  RETURN_IF_ERROR(check.status());
  ASSIGN_OR_RETURN(const Window window,
                   WindowOf(context.attributes, SpatialOf(x.shape), context.attributes.Ints("kernel_shape")));
  CheckConvolution(check, dy, x, group, dy.shape[1], window);
  RETURN_IF_ERROR(check.status());
  Shape weight = {dy.shape[1], x.shape[1] / group};
  weight.insert(weight.end(), window.kernel.begin(), window.kernel.end());
  return std::vector<TensorType>{{x.dtype, weight}, {x.dtype, {dy.shape[1]}}};
}

// Strides, dilations, pads and group, without the kernel's shape.
Attributes ConvAttributes(const Window& window, int64_t group) {
  Attributes attributes;
  SetWindow(window, attributes);
  attributes.Erase("kernel_shape");
  attributes.Set("group", group);
  return attributes;
}

struct Gradients {
  Value* weight;
  Value* bias;
};

Gradients WeightGradient(GraphBuilder& build, Value* dy, Value* x, const Window& window, int64_t group, bool bias) {
  Attributes attributes = ConvAttributes(window, group);
  attributes.Set("kernel_shape", window.kernel);
  const std::vector<Value*> outputs =
      build.Ops("onnxtrain.ConvWeightGrad", {dy, x}, std::move(attributes), bias ? 2 : 1);
  return {outputs[0], bias ? outputs[1] : nullptr};
}

Status ConvGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  Value* x = context.input(0);
  Value* w = context.input(1);
  Value* dy = context.output_gradient(0);
  const int64_t group = context.attributes().Int("group", 1);
  ASSIGN_OR_RETURN(const Window window,
                   WindowOf(context.attributes(), SpatialOf(x->type().shape), SpatialOf(w->type().shape)));
  if (context.wanted(0)) {
    Attributes attributes = ConvAttributes(window, group);
    attributes.Set("input_shape", x->type().shape);
    context.SetInputGradient(0, build.Op("onnxtrain.ConvInputGrad", {dy, w}, std::move(attributes)));
  }
  if (context.wanted(1)) {
    const Gradients gradients = WeightGradient(build, dy, x, window, group, context.wanted(2));
    context.SetInputGradient(1, gradients.weight);
    if (context.wanted(2)) context.SetInputGradient(2, gradients.bias);
  } else if (context.wanted(2)) {
    std::vector<int64_t> axes;
    for (int64_t axis = 0; axis < x->type().rank(); ++axis) {
      if (axis != 1) axes.push_back(axis);
    }
    context.SetInputGradient(2, build.ReduceSum(dy, axes, /*keepdims=*/false));
  }
  return build.status();
}

// y = ConvInputGrad(x, w) is linear in both: dL/dx = Conv(dL/dy, w), and w sees the roles of x and dy exchanged.
Status InputGradientGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  Value* x = context.input(0);
  Value* w = context.input(1);
  Value* dy = context.output_gradient(0);
  const int64_t group = context.attributes().Int("group", 1);
  ASSIGN_OR_RETURN(const Window window,
                   WindowOf(context.attributes(), SpatialOf(dy->type().shape), SpatialOf(w->type().shape)));
  if (context.wanted(0)) {
    context.SetInputGradient(0, build.Op("Conv", {dy, w}, ConvAttributes(window, group)));
  }
  if (context.wanted(1)) {
    context.SetInputGradient(1, WeightGradient(build, x, dy, window, group, /*bias=*/false).weight);
  }
  return build.status();
}

// Pads and output sizes of a ConvTranspose, whose output_shape and auto_pad may ask for pads that fit.
StatusOr<Shape> TransposedOutput(const Attributes& attributes, const Shape& spatial, Window& window) {
  const std::string auto_pad = attributes.String("auto_pad", "NOTSET");
  const std::vector<int64_t> wanted = attributes.Ints("output_shape");
  std::vector<int64_t> extra = attributes.Ints("output_padding");
  if (extra.empty()) extra.assign(spatial.size(), 0);
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (extra.size() != spatial.size() || (!wanted.empty() && wanted.size() < spatial.size())) {
    return InvalidModelError("output_padding and output_shape need one number a spatial axis");
  }
  Shape output;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t full = window.strides[i] * (spatial[i] - 1) + extra[i] + window.extent(i);
    if (wanted.empty() && !same) {
      output.push_back(full - window.pads_begin[i] - window.pads_end[i]);
      continue;
    }
    output.push_back(wanted.empty() ? spatial[i] * window.strides[i] : wanted[wanted.size() - spatial.size() + i]);
    const int64_t total = std::max<int64_t>(0, full - output[i]);
    window.pads_begin[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    window.pads_end[i] = total - window.pads_begin[i];
  }
  return output;
}

// The end of an output that no window of the convolution reaches is a negative pad of it; there the result is the bias.
Status LiftConvTranspose(LiftContext& context) {
  GraphBuilder& build = context.build;
  const Attributes& attributes = context.node.attributes;
  Value* x = context.node.inputs[0];
  Value* w = context.node.inputs[1];
  const int64_t group = attributes.Int("group", 1);
  if (x->type().rank() < 3 || w->type().rank() != x->type().rank() || w->type().shape[0] != x->type().shape[1]) {
    return InvalidModelError(context.node.origin + ": cannot convolve " + ToString(x->type()) + " with " +
                             ToString(w->type()));
  }
  Attributes plain = attributes;
  if (attributes.String("auto_pad", "NOTSET") != "NOTSET") plain.Erase("pads");
  plain.Erase("auto_pad");
  const Shape spatial = SpatialOf(x->type().shape);
  ASSIGN_OR_RETURN(Window window, WindowOf(plain, spatial, SpatialOf(w->type().shape)));
  ASSIGN_OR_RETURN(const Shape output, TransposedOutput(attributes, spatial, window));
  Shape shape = {x->type().shape[0], w->type().shape[1] * group};
  shape.insert(shape.end(), output.begin(), output.end());
  Attributes own = ConvAttributes(window, group);
  own.Set("input_shape", shape);
  const bool has_bias = context.HasInput(2);
  Value* y = build.Op("onnxtrain.ConvInputGrad", {x, w}, std::move(own),
                      has_bias ? "" : std::string_view(context.node.output_names[0]));
  if (has_bias) {
    Shape broadcast(shape.size() - 1, 1);
    broadcast[0] = shape[1];
    y = build.Op("Add", {y, build.Reshape(context.node.inputs[2], broadcast)}, {}, context.node.output_names[0]);
  }
  context.ReplaceOutputs({y});
  return build.status().ok() ? OkStatus() : build.status().Prepend(context.node.origin);
}

}  // namespace

void AddConvOps(OpRegistry& registry) {
  registry.Add({.name = "Conv", .gradient = ConvGradient});
  registry.Add({.name = "ConvTranspose", .lift = LiftConvTranspose});
  registry.Add({.name = "onnxtrain.ConvInputGrad", .infer = InferInputGradient, .gradient = InputGradientGradient});
  registry.Add({.name = "onnxtrain.ConvWeightGrad", .infer = InferWeightGradient});
}

}  // namespace onnxtrain
