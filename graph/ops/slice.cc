// SPDX-License-Identifier: Apache-2.0
// Slice, Split, Concat and Pad: parts of tensors, and the adjoints that put the parts back.
#include <algorithm>
#include <cstdlib>

#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/op_rules.h"
#include "graph/ops/own_op_checks.h"
#include "graph/ops/slice_ranges.h"

namespace onnxtrain {
namespace {

Status LiftSlice(LiftContext& lift) {
  if (lift.opset() >= 10) return OkStatus();
  lift.AttributeToInput("starts", 1);
  lift.AttributeToInput("ends", 2);
  lift.AttributeToInput("axes", 3);
  return OkStatus();
}

// onnxtrain.SliceGrad (dy) <shape, starts, steps>: zeros of `shape` with dy in place of the slice.
Status SliceGradient(GradientContext& context) {
  ASSIGN_OR_RETURN(SliceRanges ranges, SliceRangesOf(context.node()));
  Attributes attributes{{"shape", context.input(0)->type().shape}, {"starts", ranges.starts}, {"steps", ranges.steps}};
  context.SetInputGradient(
      0, context.build.Op("onnxtrain.SliceGrad", {context.output_gradient(0)}, std::move(attributes)));
  return OkStatus();
}

StatusOr<std::vector<TensorType>> InferSliceGrad(const InferContext& context) {
  OwnOpChecks checks(context);
  checks.Inputs(1, 1);
  checks.Outputs(1, 1);
  checks.Attributes({{"shape", AttributeKind::kInts, true},
                     {"starts", AttributeKind::kInts, true},
                     {"steps", AttributeKind::kInts, true}});
  checks.Floating(0, "dy");
  RETURN_IF_ERROR(checks.status());
  const Shape shape = context.attributes.Ints("shape");
  const std::vector<int64_t> starts = context.attributes.Ints("starts");
  const std::vector<int64_t> steps = context.attributes.Ints("steps");
  const Shape& dy = context.inputs[0].shape;
  bool fits = shape.size() == dy.size() && starts.size() == dy.size() && steps.size() == dy.size();
  for (size_t axis = 0; fits && axis < dy.size(); ++axis) {
    const int64_t size = shape[axis];
    fits = size >= 0 && dy[axis] <= size && steps[axis] >= -std::max<int64_t>(size, 1) &&
           steps[axis] <= std::max<int64_t>(size, 1);
    if (!fits || dy[axis] == 0) continue;
    const int64_t last = starts[axis] + (dy[axis] - 1) * steps[axis];
    fits = std::min(starts[axis], last) >= 0 && std::max(starts[axis], last) < size;
  }
  checks.Demand(fits, "dy " + ToString(dy) + " does not lie within shape " + ToString(shape));
  RETURN_IF_ERROR(checks.status());
  return std::vector<TensorType>{{context.inputs[0].dtype, shape}};
}

StatusOr<std::vector<TensorType>> InferPadGrad(const InferContext& context) {
  OwnOpChecks checks(context);
  checks.Inputs(4, 4);
  checks.Outputs(1, 1);
  checks.Attributes({{"shape", AttributeKind::kInts, true}, {"mode", AttributeKind::kString, true}});
  checks.Floating(0, "dy");
  const Shape shape = context.attributes.Ints("shape");
  checks.Demand(context.inputs.empty() || context.inputs[0].shape.size() == shape.size(),
                "attribute shape must have as many axes as dy");
  RETURN_IF_ERROR(checks.status());
  return std::vector<TensorType>{{context.inputs[0].dtype, shape}};
}

Status CheckPad(const InferContext& context, const std::vector<TensorType>&) {
  if (context.inputs.size() > 2 && context.inputs[2].known() && context.inputs[2].elements() != 1) {
    return InvalidModelError("constant_value must be a scalar, found " + ToString(context.inputs[2]));
  }
  return OkStatus();
}

Status LiftSplit(LiftContext& lift) {
  if (lift.opset() < 13) lift.AttributeToInput("split", 1);
  if (lift.opset() < 18 && !lift.HasInput(1)) {
    lift.node.attributes.Set("num_outputs", static_cast<int64_t>(lift.node.output_names.size()));
  }
  return OkStatus();
}

// The parts, put together again; a part that L does not depend on is zero.
Status SplitGradient(GradientContext& context) {
  std::vector<Value*> parts;
  ASSIGN_OR_RETURN(std::vector<TensorType> types, SplitTypes(context.node()));
  for (size_t i = 0; i < types.size(); ++i) {
    Value* gradient = context.output_gradient(i);
    parts.push_back(gradient != nullptr ? gradient : context.build.Zeros(types[i]));
  }
  if (parts.size() == 1) {
    context.SetInputGradient(0, parts[0]);
  } else {
    context.SetInputGradient(0, context.build.Op("Concat", parts, {{"axis", context.attributes().Int("axis", 0)}}));
  }
  return OkStatus();
}

Status ConcatGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  const size_t count = context.node().inputs().size();
  const int64_t axis = NonNegativeAxis(context.attributes().Int("axis", 0), context.input(0)->type().rank());
  if (count == 1) {
    context.SetInputGradient(0, context.output_gradient(0));
    return OkStatus();
  }
  std::vector<int64_t> sizes;
  bool all = true;
  for (size_t i = 0; i < count; ++i) {
    sizes.push_back(context.input(i)->type().shape[static_cast<size_t>(axis)]);
    all &= context.wanted(i);
  }
  if (all) {
    std::vector<Value*> parts =
        build.Ops("Split", {context.output_gradient(0), build.Ints(sizes)}, {{"axis", axis}}, count);
    for (size_t i = 0; i < count; ++i) context.SetInputGradient(i, parts[i]);
    return OkStatus();
  }
  int64_t start = 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t end = start + sizes[i];
    if (context.wanted(i)) {
      context.SetInputGradient(i, build.Op("Slice", {context.output_gradient(0), build.Ints({start}), build.Ints({end}),
                                                     build.Ints({axis})}));
    }
    start = end;
  }
  return OkStatus();
}

Status LiftPad(LiftContext& lift) {
  if (lift.opset() >= 11) return OkStatus();
  const DType dtype = lift.node.inputs.at(0)->type().dtype;
  lift.AttributeToInput("pads", 1);
  lift.node.inputs.resize(3, nullptr);
  lift.node.inputs[2] = lift.build.Scalar(DecimalValue(lift.node.attributes.Float("value", 0)), dtype);
  lift.node.attributes.Erase("value");
  return OkStatus();
}

// Padding with a constant: cropping what was padded and padding with zero what was cropped. The other modes read
// elements more than once: onnxtrain.PadGrad (dy, pads, -, axes) <mode, shape> sums them.
Status PadGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  Value* dy = context.output_gradient(0);
  if (context.attributes().String("mode", "constant") == "constant") {
    ASSIGN_OR_RETURN(std::vector<int64_t> pads, ConstantInts(context.node(), 1));
    for (int64_t& pad : pads) pad = -pad;
    std::vector<Value*> inputs{dy, build.Ints(pads)};
    if (context.input(3) != nullptr) inputs.insert(inputs.end(), {nullptr, context.input(3)});
    context.SetInputGradient(0, build.Op("Pad", inputs));
    return OkStatus();
  }
  Attributes attributes = context.attributes();
  attributes.Set("shape", context.input(0)->type().shape);
  context.SetInputGradient(
      0, build.Op("onnxtrain.PadGrad", {dy, context.input(1), nullptr, context.input(3)}, std::move(attributes)));
  return OkStatus();
}

std::vector<AliasRule> ViewWhenAlone(const Node& node) {
  if (node.inputs().size() != 1) return {};
  return ViewOfInput(node);
}

}  // namespace

void AddSliceOps(OpRegistry& registry) {
  registry.Add({.name = "Slice", .lift = LiftSlice, .gradient = SliceGradient, .stop_gradient_inputs = {1, 2, 3, 4}});
  registry.Add({.name = "onnxtrain.SliceGrad", .infer = InferSliceGrad});
  registry.Add({.name = "Split", .lift = LiftSplit, .gradient = SplitGradient, .stop_gradient_inputs = {1}});
  registry.Add({.name = "Concat", .gradient = ConcatGradient, .aliases = ViewWhenAlone});
  registry.Add({.name = "Pad",
                .lift = LiftPad,
                .infer = SchemaThen(CheckPad),
                .gradient = PadGradient,
                .stop_gradient_inputs = {1, 2, 3}});
  registry.Add({.name = "onnxtrain.PadGrad", .infer = InferPadGrad});
}

}  // namespace onnxtrain
