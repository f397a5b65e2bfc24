// SPDX-License-Identifier: Apache-2.0
// Resize and what it was called before, Upsample. Linear in its data: the gradient is the transposed interpolation.
#include <string>

#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/op_rules.h"
#include "graph/ops/own_op_checks.h"

namespace onnxtrain {
namespace {

// Opset 10 had inputs (x, scales) and one way to place pixels.
Status MoveScales(LiftContext& lift) {
  lift.node.inputs.resize(3, nullptr);
  lift.node.inputs[2] = lift.node.inputs[1];
  lift.node.inputs[1] = nullptr;
  lift.node.attributes.Set("coordinate_transformation_mode", std::string("asymmetric"));
  lift.node.attributes.Set("nearest_mode", std::string("floor"));
  return OkStatus();
}

Status LiftResize(LiftContext& lift) { return lift.opset() <= 10 ? MoveScales(lift) : OkStatus(); }

Status LiftUpsample(LiftContext& lift) {
  lift.node.op = "Resize";
  lift.node.inputs.resize(2, nullptr);
  if (lift.node.attributes.Has("scales")) {
    const std::vector<float> scales = lift.node.attributes.Floats("scales");
    lift.node.inputs[1] =
        lift.build.Constant(Tensor::FromVector({static_cast<int64_t>(scales.size())}, scales), "scales");
    lift.node.attributes.Erase("scales");
  }
  if (lift.node.attributes.String("mode", "nearest") == "bilinear") {
    lift.node.attributes.Set("mode", std::string("linear"));
  }
  return MoveScales(lift);
}

// onnxtrain.ResizeGrad (dy) <shape, scales, attributes of Resize>: the gradient of x, which has `shape`.
Status ResizeGradient(GradientContext& context) {
  Attributes attributes = context.attributes();
  attributes.Set("shape", context.input(0)->type().shape);
  const Value* scales = context.input(2);
  if (scales != nullptr && scales->type().elements() > 0) {
    if (scales->constant() == nullptr) {
      return InvalidModelError("the scales of " + context.node().Describe() + " must be a constant");
    }
    std::vector<float> values;
    for (int64_t i = 0; i < scales->type().elements(); ++i) {
      values.push_back(static_cast<float>(scales->constant()->DoubleAt(i)));
    }
    attributes.Set("scales", std::move(values));
  }
  context.SetInputGradient(
      0, context.build.Op("onnxtrain.ResizeGrad", {context.output_gradient(0)}, std::move(attributes)));
  return OkStatus();
}

StatusOr<std::vector<TensorType>> InferResizeGrad(const InferContext& context) {
  OwnOpChecks checks(context);
  checks.Inputs(1, 1);
  checks.Outputs(1, 1);
  checks.Attributes({{"shape", AttributeKind::kInts, true},
                     {"scales", AttributeKind::kFloats},
                     {"axes", AttributeKind::kInts},
                     {"mode", AttributeKind::kString},
                     {"nearest_mode", AttributeKind::kString},
                     {"coordinate_transformation_mode", AttributeKind::kString},
                     {"keep_aspect_ratio_policy", AttributeKind::kString},
                     {"cubic_coeff_a", AttributeKind::kFloat},
                     {"extrapolation_value", AttributeKind::kFloat},
                     {"antialias", AttributeKind::kInt},
                     {"exclude_outside", AttributeKind::kInt}});
  checks.Floating(0, "dy");
  const Shape shape = context.attributes.Ints("shape");
  checks.Demand(!context.inputs.empty() && context.inputs[0].shape.size() == shape.size(),
                "attribute shape must have as many axes as dy");
  RETURN_IF_ERROR(checks.status());
  return std::vector<TensorType>{{context.inputs[0].dtype, shape}};
}

}  // namespace

void AddResizeOps(OpRegistry& registry) {
  registry.Add({.name = "Resize", .lift = LiftResize, .gradient = ResizeGradient, .stop_gradient_inputs = {1, 2, 3}});
  registry.Add({.name = "Upsample", .lift = LiftUpsample});
  registry.Add({.name = "onnxtrain.ResizeGrad", .infer = InferResizeGrad});
}

}  // namespace onnxtrain
