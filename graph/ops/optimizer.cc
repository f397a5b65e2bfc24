// SPDX-License-Identifier: Apache-2.0
// Step control, schedules and optimizers (table in passes/README.md).
#include <limits>

#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/own_op_checks.h"

namespace onnxtrain {
namespace {

using Kind = AttributeKind;
using Types = StatusOr<std::vector<TensorType>>;
constexpr size_t kAny = std::numeric_limits<size_t>::max();

TensorType DoubleScalar() { return {DType::kDouble, {}}; }
TensorType Counter() { return {DType::kInt64, {}}; }
TensorType Flag() { return {DType::kBool, {}}; }

Types InferStepSums(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(2, 2);
  check.Outputs(1, 2);
  check.Attributes({});
  check.Floating(0, "loss");
  check.OneElement(0, "loss");
  check.Floating(1, "weight");
  check.OneElement(1, "weight");
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{{DType::kDouble, {3}}, Counter()};
}

Types InferSquaredNorm(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(1, kAny);
  check.Outputs(1, 1);
  check.Attributes({});
  for (size_t i = 0; i < context.inputs.size(); ++i) check.Floating(i, "gradient");
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{{DType::kDouble, {1}}};
}

Types InferStepControl(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(1, 1);
  check.Outputs(4, 4);
  check.Attributes({{"clip", Kind::kFloat}, {"gradient_multiplier", Kind::kFloat}});
  check.Type(0, "totals", {DType::kDouble, {4}});
  RETURN_IF_ERROR(check.status());
  const float clip = context.attributes.Float("clip", 0);
  check.Demand(clip >= 0, "attribute 'clip' must not be negative, found " + std::to_string(clip));
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{DoubleScalar(), DoubleScalar(), DoubleScalar(), Flag()};
}

void CheckSchedule(OwnOpChecks& check, const InferContext& context) {
  if (!check.ok()) return;
  const Attributes& attributes = context.attributes;
  const std::string schedule = attributes.String("schedule", "constant");
  const bool bounded = schedule == "linear" || schedule == "cosine" || schedule == "wsd";
  check.Demand(bounded || schedule == "constant" || schedule == "step",
               "attribute 'schedule' must be constant, linear, cosine, step or wsd, found \"" + schedule + "\"");
  const int64_t warmup = attributes.Int("warmup_steps", 0);
  const int64_t steps = attributes.Int("max_steps", 0);
  check.Demand(warmup >= 0, "attribute 'warmup_steps' must not be negative");
  check.Demand(!bounded || steps > warmup, "schedule " + schedule + " needs 'max_steps' above 'warmup_steps', found " +
                                               std::to_string(steps) + " and " + std::to_string(warmup));
  check.Demand(schedule != "step" || attributes.Int("step_size", 0) > 0, "schedule step needs 'step_size' above 0");
  check.Demand(schedule != "wsd" || attributes.Int("decay_steps", 0) > 0, "schedule wsd needs 'decay_steps' above 0");
}

Types InferLearningRate(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(1, 1);
  check.Outputs(1, 1);
  check.Attributes({{"schedule", Kind::kString},
                    {"lr", Kind::kFloat, true},
                    {"min_lr", Kind::kFloat},
                    {"warmup_steps", Kind::kInt},
                    {"max_steps", Kind::kInt},
                    {"step_size", Kind::kInt},
                    {"gamma", Kind::kFloat},
                    {"decay_steps", Kind::kInt}});
  check.Type(0, "step", Counter());
  CheckSchedule(check, context);
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{DoubleScalar()};
}

Types InferAdvanceStep(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(2, 2);
  check.Outputs(1, 1);
  check.Attributes({});
  check.Type(0, "step", Counter());
  check.Type(1, "apply", Flag());
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{Counter()};
}

Types InferCountLabels(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(1, 2);
  check.Outputs(1, 1);
  check.Attributes({{"ignore_index", Kind::kInt}, {"to", Kind::kInt}});
  RETURN_IF_ERROR(check.status());
  check.Demand(IsInteger(context.inputs[0].dtype),
               "input 0 (labels) must be integers, found " + ToString(context.inputs[0]));
  if (context.inputs.size() == 2 && context.inputs[1].known()) {
    check.Floating(1, "class weights");
    check.Flat(1, "class weights");
  }
  const DType to = static_cast<DType>(context.attributes.Int("to", static_cast<int64_t>(DType::kFloat)));
  check.Demand(to == DType::kFloat || to == DType::kDouble, "attribute 'to' must be 1 (float) or 11 (double)");
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{{to, {}}};
}

// One moment that is read and written beside the weight: w, g, [state], rate, grad_scale, step, apply.
// Two: w, g, m, v, rate, grad_scale, step, apply.
void CheckOptimizerInputs(OwnOpChecks& check, const InferContext& context, size_t moments, bool optional_moment) {
  check.Inputs(6 + moments, 6 + moments);
  check.Floating(0, "weight");
  if (!check.ok()) return;
  const TensorType& weight = context.inputs[0];
  check.Type(1, "gradient", weight);
  for (size_t i = 2; i < 2 + moments; ++i) {
    if (!optional_moment || context.inputs[i].known()) check.Type(i, "moment", weight);
  }
  check.Type(2 + moments, "learning rate", DoubleScalar());
  check.Type(3 + moments, "gradient scale", DoubleScalar());
  check.Type(4 + moments, "step", Counter());
  check.Type(5 + moments, "apply", Flag());
}

// Whole parameters carry weight_decay and lr_multiplier; shards carry the bucket and lists by optimizer group.
void CheckGroups(OwnOpChecks& check, const InferContext& context) {
  if (!check.ok()) return;
  const Attributes& attributes = context.attributes;
  const bool sharded = attributes.Has("bucket");
  const bool lists = attributes.Has("weight_decays") && attributes.Has("lr_multipliers");
  const bool single = attributes.Has("weight_decay") || attributes.Has("lr_multiplier");
  check.Demand(!sharded || (lists && !single),
               "with attribute 'bucket' the lists 'weight_decays' and 'lr_multipliers' by group are needed");
  check.Demand(sharded || !(attributes.Has("weight_decays") || attributes.Has("lr_multipliers")),
               "'weight_decays' and 'lr_multipliers' go with attribute 'bucket' only");
  check.Demand(!lists || attributes.Floats("weight_decays").size() == attributes.Floats("lr_multipliers").size(),
               "'weight_decays' and 'lr_multipliers' differ in length");
  if (sharded) check.Flat(0, "weight");
}

constexpr AttributeRule kBucket{"bucket", Kind::kInt};
constexpr AttributeRule kDecay{"weight_decay", Kind::kFloat};
constexpr AttributeRule kMultiplier{"lr_multiplier", Kind::kFloat};
constexpr AttributeRule kDecays{"weight_decays", Kind::kFloats};
constexpr AttributeRule kMultipliers{"lr_multipliers", Kind::kFloats};

Types InferSgd(const InferContext& context) {
  OwnOpChecks check(context);
  check.Outputs(1, 2);
  check.Attributes({kBucket,
                    kDecay,
                    kMultiplier,
                    kDecays,
                    kMultipliers,
                    {"momentum", Kind::kFloat},
                    {"dampening", Kind::kFloat},
                    {"nesterov", Kind::kInt}});
  CheckOptimizerInputs(check, context, 1, /*optional_moment=*/true);
  CheckGroups(check, context);
  RETURN_IF_ERROR(check.status());
  const bool momentum = context.inputs[2].known();
  check.Demand(momentum == (context.attributes.Float("momentum", 0) != 0),
               "input 2 (momentum) goes with a 'momentum' above 0 and is omitted without");
  check.Demand(momentum == (context.wanted.size() == 2 && context.wanted[1]),
               "output 1 (momentum) goes with input 2 (momentum)");
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{context.inputs[0], momentum ? context.inputs[0] : TensorType{}};
}

Types InferAdam(const InferContext& context) {
  OwnOpChecks check(context);
  check.Outputs(3, 3);
  check.Attributes({kBucket,
                    kDecay,
                    kMultiplier,
                    kDecays,
                    kMultipliers,
                    {"beta1", Kind::kFloat},
                    {"beta2", Kind::kFloat},
                    {"epsilon", Kind::kFloat}});
  CheckOptimizerInputs(check, context, 2, /*optional_moment=*/false);
  CheckGroups(check, context);
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>(3, context.inputs[0]);
}

Types InferAdagrad(const InferContext& context) {
  OwnOpChecks check(context);
  check.Outputs(2, 2);
  check.Attributes({kBucket, kDecay, kMultiplier, kDecays, kMultipliers, {"epsilon", Kind::kFloat}});
  CheckOptimizerInputs(check, context, 1, /*optional_moment=*/false);
  CheckGroups(check, context);
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>(2, context.inputs[0]);
}

Types InferLion(const InferContext& context) {
  OwnOpChecks check(context);
  check.Outputs(2, 2);
  check.Attributes(
      {kBucket, kDecay, kMultiplier, kDecays, kMultipliers, {"beta1", Kind::kFloat}, {"beta2", Kind::kFloat}});
  CheckOptimizerInputs(check, context, 1, /*optional_moment=*/false);
  CheckGroups(check, context);
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>(2, context.inputs[0]);
}

// Output 0 over the weight, output i over moment i.
std::vector<AliasRule> OptimizerAliases(const Node& node) {
  std::vector<AliasRule> rules{{AliasRule::Kind::kInPlace, 0, 0}};
  for (int i = 1; i < static_cast<int>(node.outputs().size()); ++i) {
    if (node.output(static_cast<size_t>(i)) != nullptr) rules.push_back({AliasRule::Kind::kInPlace, i, i + 1});
  }
  return rules;
}

std::vector<AliasRule> AdvanceStepAliases(const Node&) { return {{AliasRule::Kind::kInPlace, 0, 0}}; }

OpDef Own(std::string name, InferFn infer, AliasFn aliases = nullptr) {
  OpDef def;
  def.name = std::move(name);
  def.infer = std::move(infer);
  def.aliases = std::move(aliases);
  return def;
}

}  // namespace

void AddOptimizerOps(OpRegistry& registry) {
  registry.Add(Own("onnxtrain.StepSums", InferStepSums));
  registry.Add(Own("onnxtrain.SquaredNorm", InferSquaredNorm));
  registry.Add(Own("onnxtrain.StepControl", InferStepControl));
  registry.Add(Own("onnxtrain.LearningRate", InferLearningRate));
  registry.Add(Own("onnxtrain.AdvanceStep", InferAdvanceStep, AdvanceStepAliases));
  registry.Add(Own("onnxtrain.CountLabels", InferCountLabels));
  registry.Add(Own("onnxtrain.SGD", InferSgd, OptimizerAliases));
  registry.Add(Own("onnxtrain.Adam", InferAdam, OptimizerAliases));
  registry.Add(Own("onnxtrain.AdamW", InferAdam, OptimizerAliases));
  registry.Add(Own("onnxtrain.Adagrad", InferAdagrad, OptimizerAliases));
  registry.Add(Own("onnxtrain.Lion", InferLion, OptimizerAliases));
}

}  // namespace onnxtrain
