// SPDX-License-Identifier: Apache-2.0
// Operators that move elements or make them from shapes: views, Transpose, Expand, Tile, Trilu, Range, constants.
#include <algorithm>
#include <numeric>

#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/op_rules.h"
#include "graph/ops/permutation.h"

namespace onnxtrain {
namespace {

// The gradient of a view is a view.
Status ViewGradient(GradientContext& context) {
  context.SetInputGradient(0, context.build.Reshape(context.output_gradient(0), context.input(0)->type().shape));
  return OkStatus();
}

Status CheckView(const InferContext& context, const std::vector<TensorType>& outputs) {
  if (context.inputs[0].elements() == outputs[0].elements()) return OkStatus();
  return InvalidModelError(ToString(context.inputs[0]) + " cannot be seen as " + ToString(outputs[0]) +
                           ": the number of elements differs");
}

// Every input behind `first` that is there is one number.
Status CheckScalars(const InferContext& context, size_t first) {
  for (size_t i = first; i < context.inputs.size(); ++i) {
    if (!context.inputs[i].known() || context.inputs[i].elements() == 1) continue;
    return InvalidModelError("input " + std::to_string(i) + " must be a scalar, found " + ToString(context.inputs[i]));
  }
  return OkStatus();
}

Status CheckTrilu(const InferContext& context, const std::vector<TensorType>&) { return CheckScalars(context, 1); }
Status CheckRange(const InferContext& context, const std::vector<TensorType>&) { return CheckScalars(context, 0); }

Status CheckConstantOfShape(const InferContext& context, const std::vector<TensorType>&) {
  const AttributeValue* value = context.attributes.Find("value");
  const Tensor* tensor = value == nullptr ? nullptr : std::get_if<Tensor>(value);
  if (tensor == nullptr || tensor->elements() == 1) return OkStatus();
  return InvalidModelError("attribute value must have one element, found " + ToString(tensor->type()));
}

void AddView(OpRegistry& registry, const char* name, LiftFn lift, std::vector<int> stops) {
  registry.Add({.name = name,
                .lift = std::move(lift),
                .infer = SchemaThen(CheckView),
                .gradient = ViewGradient,
                .aliases = ViewOfInput,
                .stop_gradient_inputs = std::move(stops)});
}

Status TransposeGradient(GradientContext& context) {
  const std::vector<int64_t> permutation = PermutationOf(context.node());
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  }
  context.SetInputGradient(0, context.build.Transpose(context.output_gradient(0), inverse));
  return OkStatus();
}

Status ExpandGradient(GradientContext& context) {
  context.SetInputGradient(0, context.build.SumTo(context.output_gradient(0), context.input(0)->type().shape));
  return OkStatus();
}

// dy [r0*d0, r1*d1, ...] seen as [r0, d0, r1, d1, ...], summed over the repeats.
Status TileGradient(GradientContext& context) {
  ASSIGN_OR_RETURN(std::vector<int64_t> repeats, ConstantInts(context.node(), 1));
  const Shape& shape = context.input(0)->type().shape;
  Shape split;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (repeats[i] != 1) {
      axes.push_back(static_cast<int64_t>(split.size()));
      split.push_back(repeats[i]);
    }
    split.push_back(shape[i]);
  }
  Value* parts = context.build.Reshape(context.output_gradient(0), split);
  context.SetInputGradient(0, context.build.ReduceSum(parts, axes, /*keepdims=*/false));
  return OkStatus();
}

Status TriluGradient(GradientContext& context) {
  std::vector<Value*> inputs = context.node().inputs();
  inputs[0] = context.output_gradient(0);
  context.SetInputGradient(0, context.build.Op("Trilu", inputs, context.attributes()));
  return OkStatus();
}

// [N, C, H, W] -> seen as six axes, permuted, seen as four again.
Value* PermuteBlocks(GraphBuilder& build, Value* x, const Shape& seen, const std::vector<int64_t>& permutation,
                     const Shape& result) {
  return build.Reshape(build.Transpose(build.Reshape(x, seen), permutation), result);
}

StatusOr<int64_t> BlockSizeOf(const LiftContext& lift) {
  const int64_t block = lift.node.attributes.Int("blocksize", 0);
  if (block <= 0) return InvalidModelError("blocksize must be positive, found " + std::to_string(block));
  if (!lift.HasInput(0) || lift.node.inputs[0]->type().rank() != 4) {
    return InvalidModelError(lift.node.op + " needs an input of 4 axes");
  }
  return block;
}

Status LiftDepthToSpace(LiftContext& lift) {
  ASSIGN_OR_RETURN(const int64_t b, BlockSizeOf(lift));
  Value* x = lift.node.inputs[0];
  const Shape& s = x->type().shape;
  if (s[1] % (b * b) != 0) return InvalidModelError("channels of DepthToSpace must be a multiple of blocksize^2");
  const int64_t depth = s[1] / (b * b);
  const Shape result{s[0], depth, s[2] * b, s[3] * b};
  if (lift.node.attributes.String("mode", "DCR") == "DCR") {
    lift.ReplaceOutputs({PermuteBlocks(lift.build, x, {s[0], b, b, depth, s[2], s[3]}, {0, 3, 4, 1, 5, 2}, result)});
  } else {
    lift.ReplaceOutputs({PermuteBlocks(lift.build, x, {s[0], depth, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, result)});
  }
  return lift.build.status();
}

Status LiftSpaceToDepth(LiftContext& lift) {
  ASSIGN_OR_RETURN(const int64_t b, BlockSizeOf(lift));
  Value* x = lift.node.inputs[0];
  const Shape& s = x->type().shape;
  if (s[2] % b != 0 || s[3] % b != 0) return InvalidModelError("SpaceToDepth: blocksize does not divide the image");
  const bool depth_first = lift.node.attributes.String("mode", "DCR") == "DCR";
  const std::vector<int64_t> permutation =
      depth_first ? std::vector<int64_t>{0, 3, 5, 1, 2, 4} : std::vector<int64_t>{0, 1, 3, 5, 2, 4};
  lift.ReplaceOutputs({PermuteBlocks(lift.build, x, {s[0], s[1], s[2] / b, b, s[3] / b, b}, permutation,
                                     {s[0], s[1] * b * b, s[2] / b, s[3] / b})});
  return lift.build.status();
}

StatusOr<Tensor> ConstantOf(const Attributes& attributes) {
  for (const auto& [name, value] : attributes.entries()) {
    if (const Tensor* tensor = std::get_if<Tensor>(&value)) return *tensor;
    if (const int64_t* number = std::get_if<int64_t>(&value)) return Tensor::Scalar(*number);
    if (const float* number = std::get_if<float>(&value)) return Tensor::Scalar(*number);
    if (const auto* numbers = std::get_if<std::vector<int64_t>>(&value)) return Tensor::Ints(*numbers);
    if (const auto* numbers = std::get_if<std::vector<float>>(&value)) {
      return Tensor::FromVector({static_cast<int64_t>(numbers->size())}, *numbers);
    }
    return InvalidModelError("Constant with attribute '" + name + "': only numbers and dense tensors are supported");
  }
  return InvalidModelError("Constant without a value");
}

Status LiftConstant(LiftContext& lift) {
  ASSIGN_OR_RETURN(Tensor tensor, ConstantOf(lift.node.attributes));
  const std::vector<std::string>& names = lift.node.output_names;
  lift.ReplaceOutputs({lift.build.Constant(std::move(tensor), names.empty() ? "constant" : names[0])});
  return OkStatus();
}

// DepthToSpace and SpaceToDepth exist for their lifting rules, which the reader looks up here.
void AddLiftedOps(OpRegistry& registry) {
  registry.Add({.name = "Constant", .lift = LiftConstant});
  registry.Add({.name = "DepthToSpace", .lift = LiftDepthToSpace});
  registry.Add({.name = "SpaceToDepth", .lift = LiftSpaceToDepth});
}

}  // namespace

void AddShapeOps(OpRegistry& registry) {
  AddView(registry, "Identity", nullptr, {});
  AddView(registry, "Reshape", nullptr, {1});
  AddView(registry, "Flatten", nullptr, {});
  AddView(registry, "Squeeze", MoveAttributeToInput(13, "axes", 1), {1});
  AddView(registry, "Unsqueeze", MoveAttributeToInput(13, "axes", 1), {1});
  registry.Add({.name = "Transpose", .gradient = TransposeGradient});
  registry.Add({.name = "Expand", .gradient = ExpandGradient, .stop_gradient_inputs = {1}});
  registry.Add({.name = "Tile", .gradient = TileGradient, .stop_gradient_inputs = {1}});
  registry.Add({.name = "Trilu",
                .infer = SchemaThen(CheckTrilu),
                .gradient = TriluGradient,
                .aliases = InPlaceOfEqualTypes,
                .stop_gradient_inputs = {1}});
  for (const char* name : {"Shape", "Size", "EyeLike"}) registry.Add({.name = name, .stop_gradient_inputs = {0}});
  registry.Add({.name = "ConstantOfShape", .infer = SchemaThen(CheckConstantOfShape)});
  registry.Add({.name = "Range", .infer = SchemaThen(CheckRange), .stop_gradient_inputs = {0, 1, 2}});
  AddLiftedOps(registry);
}

}  // namespace onnxtrain
