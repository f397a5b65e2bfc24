// SPDX-License-Identifier: Apache-2.0
#include "passes/training_pass_options.h"

#include <algorithm>
#include <charconv>

#include "passes/accumulate_gradients.h"
#include "passes/append_evaluation.h"
#include "passes/append_loss.h"
#include "passes/append_optimizer.h"
#include "passes/bucket_gradients.h"
#include "passes/contribute_zero.h"
#include "passes/insert_all_reduce.h"
#include "passes/mixed_precision.h"
#include "passes/set_mode.h"
#include "passes/shard_optimizer.h"

namespace onnxtrain {
namespace {

constexpr double kMegabyte = 1024.0 * 1024.0;

std::unique_ptr<Pass> MakeSetMode(PassOptions& options) {
  SetModeOptions chosen;
  chosen.graph = options.Text("graph", chosen.graph);
  const std::string bn = options.Choice("bn", "as-exported", {"as-exported", "train", "frozen"});
  const std::string dropout = options.Choice("dropout", "as-exported", {"as-exported", "on", "off"});
  if (bn != "as-exported") chosen.batch_norm = bn == "train" ? BatchNormMode::kTrain : BatchNormMode::kFrozen;
  if (dropout != "as-exported") chosen.dropout = dropout == "on" ? DropoutMode::kOn : DropoutMode::kOff;
  chosen.seed = options.Int("seed", 0);
  return SetMode(chosen);
}

// "4x3" -> {4, 3}; "" is a scalar. What does not parse gives no dimension: the pass then says what does not fit.
Shape ShapeOf(const std::string& text) {
  Shape shape;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at < end) {
    int64_t dim = 0;
    const auto [next, error] = std::from_chars(at, end, dim);
    if (error != std::errc()) break;
    shape.push_back(dim);
    at = next + 1;
  }
  return shape;
}

AppendLossOptions LossOptions(PassOptions& options) {
  AppendLossOptions chosen;
  chosen.graph = options.Text("graph", chosen.graph);
  const std::string kind =
      options.Choice("loss", "auto", {"auto", "ce", "mse", "bce", "l1", "smooth_l1", "nll", "sum", "mean", "l2"});
  chosen.kind = *LossKindFromName(kind);
  chosen.output = options.Text("loss_on", "");
  chosen.labels = options.Text("labels", chosen.labels);
  if (options.Has("labels_shape")) {
    const std::string fallback = HasClassLabels(chosen.kind) ? "int64" : "float";
    const std::string dtype = options.Choice("labels_dtype", fallback, {"int64", "int32", "uint8", "float", "double"});
    chosen.labels_type = {*DTypeFromName(dtype), ShapeOf(options.Text("labels_shape", ""))};
  }
  chosen.ignore_index = options.Int("ignore_index", chosen.ignore_index);
  chosen.label_smoothing = options.Number("label_smoothing", 0);
  return chosen;
}

std::unique_ptr<Pass> MakeAppendLoss(PassOptions& options) {
  AppendLossOptions chosen = LossOptions(options);
  chosen.evaluation = options.Flag("evaluation", false);
  return AppendLoss(chosen);
}

std::unique_ptr<Pass> MakeMixedPrecision(PassOptions& options) {
  const std::string dtype = options.Choice("dtype", "bf16", {"f32", "bf16"});
  return MixedPrecision({.compute = dtype == "f32" ? DType::kFloat : DType::kBfloat16});
}

LearningRateSchedule ScheduleOptions(PassOptions& options, double default_rate) {
  LearningRateSchedule schedule;
  schedule.kind = options.Choice("schedule", "constant", {"constant", "linear", "cosine", "step", "wsd"});
  schedule.lr = options.Number("lr", default_rate);
  schedule.min_lr = options.Number("min_lr", 0);
  schedule.warmup_steps = options.Int("warmup_steps", 0);
  schedule.max_steps = options.Int("max_steps", 0);
  schedule.step_size = options.Int("step_size", 0);
  schedule.gamma = options.Number("gamma", schedule.gamma);
  schedule.decay_steps = options.Int("decay_steps", 0);
  return schedule;
}

// "lr=0.1,weight-decay=0" behind the last ':' before it; keys that are not known are left to match nothing.
OptimizerGroup GroupOf(const std::string& text) {
  const size_t key = text.find('=');
  const size_t colon = key == std::string::npos ? std::string::npos : text.rfind(':', key);
  OptimizerGroup group{text.substr(0, colon), std::nullopt, std::nullopt};
  if (colon == std::string::npos) return group;
  for (size_t begin = colon + 1; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const size_t equals = text.find('=', begin);
    if (equals >= end) break;
    const std::string name = text.substr(begin, equals - begin);
    double value = 0;
    std::from_chars(text.data() + equals + 1, text.data() + end, value);
    if (name == "lr") group.lr = value;
    if (name == "weight-decay" || name == "weight_decay") group.weight_decay = value;
    begin = end + 1;
  }
  return group;
}

std::unique_ptr<Pass> MakeAppendOptimizer(PassOptions& options) {
  AppendOptimizerOptions chosen;
  chosen.graph = options.Text("graph", chosen.graph);
  const std::string method = options.Choice("optimizer", "adamw", {"sgd", "adam", "adamw", "adagrad", "lion"});
  chosen.method = *OptimizerMethodFromName(method);
  chosen.schedule = ScheduleOptions(options, DefaultLearningRate(chosen.method));
  chosen.momentum = options.OptionalNumber("momentum");
  chosen.dampening = options.OptionalNumber("dampening");
  chosen.nesterov = options.Flag("nesterov", false);
  const std::vector<double> betas = options.Numbers("betas");
  if (!betas.empty()) chosen.beta1 = betas[0];
  if (betas.size() > 1) chosen.beta2 = betas[1];
  chosen.epsilon = options.OptionalNumber("eps");
  chosen.weight_decay = options.OptionalNumber("weight_decay");
  chosen.no_decay = options.List("no_decay");
  for (const std::string& text : options.List("param_group")) chosen.groups.push_back(GroupOf(text));
  chosen.clip = options.Number("clip_grad", 0);
  chosen.gradient_multiplier = options.Number("gradient_multiplier", 1);
  return AppendOptimizer(chosen);
}

std::unique_ptr<Pass> MakeBucketGradients(PassOptions& options) {
  BucketGradientsOptions chosen;
  chosen.bucket_bytes = options.OptionalNumber("bucket_bytes");
  const std::optional<double> megabytes = options.OptionalNumber("bucket_mb");
  if (!chosen.bucket_bytes.has_value() && megabytes.has_value()) chosen.bucket_bytes = *megabytes * kMegabyte;
  chosen.cost.link_gbps = options.Number("link_gbps", chosen.cost.link_gbps);
  chosen.cost.link_latency_us = options.Number("link_latency_us", chosen.cost.link_latency_us);
  chosen.tolerance = options.Number("tolerance", chosen.tolerance);
  chosen.sharded = options.Flag("sharded", false);
  const std::string reduce = options.Choice("reduce_dtype", "f32", {"f32", "bf16"});
  if (reduce == "bf16") chosen.reduce = DType::kBfloat16;
  return BucketGradients(chosen);
}

}  // namespace

void AddTrainingPasses(PassRegistry& registry) {
  registry.Add({"append_evaluation", "add the graph eval: inference form, sums of loss and right labels",
                [](PassOptions& options) { return AppendEvaluation(LossOptions(options)); }});
  registry.Add({"set_mode", "bring Dropout and BatchNormalization into training or inference form", MakeSetMode});
  registry.Add({"append_loss", "append the loss and its weight", MakeAppendLoss});
  registry.Add({"mixed_precision", "compute products and activations in 16 bits", MakeMixedPrecision});
  registry.Add({"append_optimizer", "append step control, learning rate and optimizer nodes", MakeAppendOptimizer});
  registry.Add({"accumulate_gradients", "split the step into micro-batches", [](PassOptions& options) {
                  return AccumulateGradients({.micro_batches = static_cast<int>(options.Int("accum", 1))});
                }});
  registry.Add({"insert_all_reduce", "sum gradients over the ranks", [](PassOptions& options) {
                  return InsertAllReduce({.world_size = static_cast<int>(options.Int("ranks", 1))});
                }});
  registry.Add({"bucket_gradients", "reduce gradients in buckets of the Layout", MakeBucketGradients});
  registry.Add({"shard_optimizer", "shard parameters and moments over the ranks", [](PassOptions& options) {
                  return ShardOptimizer({.stage = static_cast<int>(options.Int("zero", 1))});
                }});
  registry.Add(
      {"contribute_zero", "add graphs for a rank without samples", [](PassOptions&) { return ContributeZero(); }});
}

}  // namespace onnxtrain
