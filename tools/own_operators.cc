// SPDX-License-Identifier: Apache-2.0
#include "tools/own_operators.h"

#include <algorithm>

#include "graph/op_registry.h"
#include "tools/console.h"

namespace onnxtrain {
namespace {

constexpr OwnOperator kOperators[] = {
    {"AllReduce", "x -> y: over the ranks", "op: \"sum\" or \"max\"; bucket: index in the layout"},
    {"ReduceScatter", "bucket [n] -> shard [n / world_size]: sum over the ranks", "op; world_size; bucket"},
    {"AllGather", "shard [n] -> bucket [n * world_size]", "world_size; bucket"},
    {"Broadcast", "x -> y: that of rank root", "root"},
    {"Shard", "bucket [n] -> shard [n / world_size]: the rank's own part", "world_size; bucket"},
    {"BucketPack", "t0, t1, ... -> flat [elements]; gaps are zero", "bucket; elements; offsets: in elements"},
    {"BucketUnpack", "flat -> t0, t1, ...: views", "bucket; offsets; shapes: \"128,784\", ..."},
    {"StepSums", "loss, weight -> double[3] (loss * weight, weight, fault flag), status int64", ""},
    {"SquaredNorm", "g0, g1, ... -> double[1]", ""},
    {"StepControl", "totals double[4] -> loss, grad_norm, grad_scale, apply",
     "clip: norm, 0 for none; gradient_multiplier"},
    {"LearningRate", "step -> rate",
     "schedule: constant, linear, cosine, step, wsd; lr; min_lr; warmup_steps; max_steps; step_size; gamma; "
     "decay_steps"},
    {"SGD", "w, g, [momentum], rate, grad_scale, step, apply -> w, [momentum]",
     "momentum; dampening; nesterov; weight_decay; lr_multiplier"},
    {"Adam", "w, g, m, v, rate, grad_scale, step, apply -> w, m, v",
     "beta1; beta2; epsilon; weight_decay; lr_multiplier"},
    {"AdamW", "w, g, m, v, rate, grad_scale, step, apply -> w, m, v",
     "beta1; beta2; epsilon; weight_decay; lr_multiplier"},
    {"Adagrad", "w, g, squared_sum, rate, grad_scale, step, apply -> w, squared_sum",
     "epsilon; weight_decay; lr_multiplier"},
    {"Lion", "w, g, momentum, rate, grad_scale, step, apply -> w, momentum",
     "beta1; beta2; weight_decay; lr_multiplier"},
    {"AdvanceStep", "step, apply -> step", ""},
    {"CountLabels", "labels, [class weights] -> scalar", "ignore_index; to: element type of the result"},
    {"MatMul", "A, B, [bias] -> Transpose(alpha A' B' + bias, perm_y), A' = Transpose(A, perm_a)",
     "perm_a; perm_b; perm_y; alpha"},
    {"SoftmaxCrossEntropyLoss", "scores, labels, [class weights] -> loss", "reduction; ignore_index; label_smoothing"},
    {"BinaryCrossEntropyWithLogits", "x, target -> loss", "reduction"},
    {"Dropout", "x, attempt -> y, mask", "ratio; seed; draw_id"},
};

}  // namespace

std::span<const OwnOperator> OwnOperators() { return kOperators; }

std::vector<std::string> GradientOperators() {
  std::vector<std::string> names;
  for (const std::string& name : OpRegistry::Default().Names()) {
    if (IsOwnOp(name) && name.ends_with("Grad")) names.push_back(name.substr(kOwnPrefix.size()));
  }
  return names;
}

std::string OwnOperatorTable() {
  std::vector<std::vector<std::string>> rows{{"operator", "inputs -> outputs", "attributes"}};
  for (const OwnOperator& op : kOperators) {
    rows.push_back({std::string(op.name), std::string(op.signature), std::string(op.attributes)});
  }
  std::string gradients;
  for (const std::string& name : GradientOperators()) gradients += (gradients.empty() ? "" : ", ") + name;
  return "Operators of the domain onnxtrain, version 1.\n\n" + Table(rows) +
         "\n\nOptimizers on shards carry bucket, and weight_decays and lr_multipliers by optimizer group in place of "
         "the single "
         "ones.\nGradient operators take the attributes of what they differentiate: " +
         gradients;
}

}  // namespace onnxtrain
