// SPDX-License-Identifier: Apache-2.0
// Reading and writing at indices. Duplicates accumulate in the order of the indices, so results repeat bit for bit.
#include <algorithm>

#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/op_rules.h"
#include "graph/ops/own_op_checks.h"

namespace onnxtrain {
namespace {

// onnxtrain.GatherGrad (indices, dy) <axis, shape>: zeros of `shape` to which the rows of dy are added.
Status GatherGradient(GradientContext& context) {
  Attributes attributes{{"axis", context.attributes().Int("axis", 0)}, {"shape", context.input(0)->type().shape}};
  context.SetInputGradient(0, context.build.Op("onnxtrain.GatherGrad", {context.input(1), context.output_gradient(0)},
                                               std::move(attributes)));
  return OkStatus();
}

// Inputs (indices, dy) and a shape: the demands that both gradient operators share.
StatusOr<std::vector<TensorType>> InferIndexedGrad(const InferContext& context, std::string_view position,
                                                   Shape (*dy_shape)(const Shape& data, const Shape& indices,
                                                                     int64_t position)) {
  OwnOpChecks checks(context);
  checks.Inputs(2, 2);
  checks.Outputs(1, 1);
  checks.Attributes({{"shape", AttributeKind::kInts, true}, {position, AttributeKind::kInt, true}});
  checks.Floating(1, "dy");
  RETURN_IF_ERROR(checks.status());
  checks.Demand(IsInteger(context.inputs[0].dtype), "indices must be integers");
  const Shape shape = context.attributes.Ints("shape");
  const Shape expected = dy_shape(shape, context.inputs[0].shape, context.attributes.Int(position, 0));
  checks.Type(1, "dy", {context.inputs[1].dtype, expected});
  RETURN_IF_ERROR(checks.status());
  return std::vector<TensorType>{{context.inputs[1].dtype, shape}};
}

// The shape of Gather's output; {-1} where the axis does not exist.
Shape GatheredShape(const Shape& data, const Shape& indices, int64_t axis) {
  const auto rank = static_cast<int64_t>(data.size());
  axis = NonNegativeAxis(axis, rank);
  if (axis < 0 || axis >= rank) return {-1};
  Shape shape(data.begin(), data.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), data.begin() + axis + 1, data.end());
  return shape;
}

// The shape of GatherND's output; {-1} where tuples or batch axes do not fit.
Shape TupleShape(const Shape& data, const Shape& indices, int64_t batch_axes) {
  if (indices.empty() || batch_axes < 0 || batch_axes >= static_cast<int64_t>(indices.size())) return {-1};
  const int64_t named = batch_axes + indices.back();
  if (indices.back() < 1 || named > static_cast<int64_t>(data.size())) return {-1};
  if (!std::equal(data.begin(), data.begin() + batch_axes, indices.begin())) return {-1};
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), data.begin() + named, data.end());
  return shape;
}

StatusOr<std::vector<TensorType>> InferGatherGrad(const InferContext& context) {
  return InferIndexedGrad(context, "axis", GatheredShape);
}

StatusOr<std::vector<TensorType>> InferGatherNDGrad(const InferContext& context) {
  return InferIndexedGrad(context, "batch_dims", TupleShape);
}

Status CheckGatherND(const InferContext& context, const std::vector<TensorType>& outputs) {
  const Shape expected =
      TupleShape(context.inputs[0].shape, context.inputs[1].shape, context.attributes.Int("batch_dims", 0));
  return outputs[0].shape == expected ? OkStatus() : InvalidModelError("indices do not fit data and batch_dims");
}

Status CheckScatterND(const InferContext& context, const std::vector<TensorType>&) {
  const Shape expected = TupleShape(context.inputs[0].shape, context.inputs[1].shape, 0);
  if (context.inputs[2].shape == expected) return OkStatus();
  return InvalidModelError("updates must be " + ToString(expected) + ", found " + ToString(context.inputs[2]));
}

// Indices name elements along one axis and must lie within the data along the others.
Status CheckElementIndices(const InferContext& context, const std::vector<TensorType>&) {
  const Shape& data = context.inputs[0].shape;
  const Shape& indices = context.inputs[1].shape;
  const auto rank = static_cast<int64_t>(data.size());
  const int64_t axis = NonNegativeAxis(context.attributes.Int("axis", 0), rank);
  bool fits = indices.size() == data.size() && axis >= 0 && axis < rank;
  for (int64_t i = 0; fits && i < rank; ++i) {
    fits = i == axis || indices[static_cast<size_t>(i)] <= data[static_cast<size_t>(i)];
  }
  if (context.inputs.size() > 2) fits = fits && context.inputs[2].shape == indices;
  return fits ? OkStatus() : InvalidModelError("indices, updates and axis do not fit the data");
}

Status CheckTopK(const InferContext& context, const std::vector<TensorType>& outputs) {
  const Shape& whole = context.inputs[0].shape;
  const Shape& kept = outputs[0].known() ? outputs[0].shape : outputs[1].shape;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (kept[i] > whole[i]) return InvalidModelError("K is larger than the axis");
  }
  return OkStatus();
}

Status CheckOneHot(const InferContext& context, const std::vector<TensorType>&) {
  return context.inputs[2].elements() == 2 ? OkStatus() : InvalidModelError("values must be two, off and on");
}

Status GatherElementsGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  Attributes attributes{{"axis", context.attributes().Int("axis", 0)}, {"reduction", std::string("add")}};
  context.SetInputGradient(
      0,
      build.Op("ScatterElements", {build.Zeros(context.input(0)->type()), context.input(1), context.output_gradient(0)},
               std::move(attributes)));
  return OkStatus();
}

// onnxtrain.GatherNDGrad (indices, dy) <batch_dims, shape>
Status GatherNDGradient(GradientContext& context) {
  Attributes attributes{{"batch_dims", context.attributes().Int("batch_dims", 0)},
                        {"shape", context.input(0)->type().shape}};
  context.SetInputGradient(0, context.build.Op("onnxtrain.GatherNDGrad", {context.input(1), context.output_gradient(0)},
                                               std::move(attributes)));
  return OkStatus();
}

StatusOr<bool> ScatterAdds(const GradientContext& context) {
  const std::string reduction = context.attributes().String("reduction", "none");
  if (reduction == "none") return false;
  if (reduction == "add") return true;
  return InvalidModelError("no gradient of reduction '" + reduction + "' of " + context.node().Describe() +
                           "; 'none' and 'add' have one");
}

// data with updates written or added at indices. `gather` reads the gradient of the updates.
Status ScatterGradient(GradientContext& context, const char* gather) {
  GraphBuilder& build = context.build;
  ASSIGN_OR_RETURN(const bool adds, ScatterAdds(context));
  Value* dy = context.output_gradient(0);
  Value* indices = context.input(1);
  if (context.wanted(0)) {
    Value* kept = dy;
    if (!adds) {
      kept = build.Op(context.node().op(), {dy, indices, build.Zeros(context.input(2)->type())}, context.attributes());
    }
    context.SetInputGradient(0, kept);
  }
  if (context.wanted(2)) {
    Attributes attributes;
    if (context.attributes().Has("axis")) attributes.Set("axis", context.attributes().Int("axis", 0));
    context.SetInputGradient(2, build.Op(gather, {dy, indices}, std::move(attributes)));
  }
  return OkStatus();
}

Status LiftScatter(LiftContext& lift) {
  lift.node.op = "ScatterElements";
  return OkStatus();
}

Status TopKGradient(GradientContext& context) {
  if (context.output_gradient(0) == nullptr) return OkStatus();
  GraphBuilder& build = context.build;
  Value* indices = context.output(1);
  if (indices == nullptr) {
    return InvalidModelError("the gradient of " + context.node().Describe() + " needs its Indices output");
  }
  context.SetInputGradient(
      0, build.Op("ScatterElements", {build.Zeros(context.input(0)->type()), indices, context.output_gradient(0)},
                  {{"axis", context.attributes().Int("axis", -1)}}));
  return OkStatus();
}

Status LiftTopK(LiftContext& lift) {
  if (lift.opset() >= 10) return OkStatus();
  lift.node.inputs.resize(2, nullptr);
  lift.node.inputs[1] = lift.build.Ints({lift.node.attributes.Int("k", 1)});
  lift.node.attributes.Erase("k");
  return OkStatus();
}

}  // namespace

void AddGatherOps(OpRegistry& registry) {
  registry.Add({.name = "Gather", .gradient = GatherGradient, .stop_gradient_inputs = {1}});
  registry.Add({.name = "onnxtrain.GatherGrad", .infer = InferGatherGrad});
  registry.Add({.name = "GatherElements",
                .infer = SchemaThen(CheckElementIndices),
                .gradient = GatherElementsGradient,
                .stop_gradient_inputs = {1}});
  registry.Add({.name = "GatherND",
                .infer = SchemaThen(CheckGatherND),
                .gradient = GatherNDGradient,
                .stop_gradient_inputs = {1}});
  registry.Add({.name = "onnxtrain.GatherNDGrad", .infer = InferGatherNDGrad});
  registry.Add({.name = "Scatter", .lift = LiftScatter});
  registry.Add({.name = "ScatterElements",
                .infer = SchemaThen(CheckElementIndices),
                .gradient = [](GradientContext& context) { return ScatterGradient(context, "GatherElements"); },
                .stop_gradient_inputs = {1}});
  registry.Add({.name = "ScatterND",
                .infer = SchemaThen(CheckScatterND),
                .gradient = [](GradientContext& context) { return ScatterGradient(context, "GatherND"); },
                .stop_gradient_inputs = {1}});
  registry.Add({.name = "TopK",
                .lift = LiftTopK,
                .infer = SchemaThen(CheckTopK),
                .gradient = TopKGradient,
                .stop_gradient_inputs = {1}});
  registry.Add({.name = "OneHot", .infer = SchemaThen(CheckOneHot), .stop_gradient_inputs = {0, 1}});
}

}  // namespace onnxtrain
