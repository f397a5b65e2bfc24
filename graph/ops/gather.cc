// SPDX-License-Identifier: Apache-2.0
// Reading and writing at indices. Duplicates accumulate in the order of the indices, so results repeat bit for bit.
#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/op_rules.h"

namespace onnxtrain {
namespace {

// onnxtrain.GatherGrad (indices, dy) <axis, shape>: zeros of `shape` to which the rows of dy are added.
Status GatherGradient(GradientContext& context) {
  Attributes attributes{{"axis", context.attributes().Int("axis", 0)}, {"shape", context.input(0)->type().shape}};
  context.SetInputGradient(0, context.build.Op("onnxtrain.GatherGrad", {context.input(1), context.output_gradient(0)},
                                               std::move(attributes)));
  return OkStatus();
}

StatusOr<std::vector<TensorType>> InferShapeAttribute(const InferContext& context) {
  if (context.inputs.size() < 2) return InvalidModelError("indices and dy expected");
  return std::vector<TensorType>{{context.inputs[1].dtype, context.attributes.Ints("shape")}};
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
  registry.Add({.name = "onnxtrain.GatherGrad", .infer = InferShapeAttribute});
  registry.Add({.name = "GatherElements", .gradient = GatherElementsGradient, .stop_gradient_inputs = {1}});
  registry.Add({.name = "GatherND", .gradient = GatherNDGradient, .stop_gradient_inputs = {1}});
  registry.Add({.name = "onnxtrain.GatherNDGrad", .infer = InferShapeAttribute});
  registry.Add({.name = "Scatter", .lift = LiftScatter});
  registry.Add({.name = "ScatterElements",
                .gradient = [](GradientContext& context) { return ScatterGradient(context, "GatherElements"); },
                .stop_gradient_inputs = {1}});
  registry.Add({.name = "ScatterND",
                .gradient = [](GradientContext& context) { return ScatterGradient(context, "GatherND"); },
                .stop_gradient_inputs = {1}});
  registry.Add({.name = "TopK", .lift = LiftTopK, .gradient = TopKGradient, .stop_gradient_inputs = {1}});
  registry.Add({.name = "OneHot", .stop_gradient_inputs = {0, 1}});
}

}  // namespace onnxtrain
