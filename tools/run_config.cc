// SPDX-License-Identifier: Apache-2.0
#include "tools/run_config.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace onnxtrain {
namespace {

using Json = nlohmann::ordered_json;

void AddLists(const RunOptions& run, Json& json) {
  const TrainingOptions& t = run.training;
  const std::pair<const char*, const std::vector<std::string>*> lists[] = {
      {"trainable", &t.trainable}, {"freeze", &t.freeze},   {"no-decay", &t.no_decay}, {"train", &run.train},
      {"val", &run.val},           {"feed", &run.feed},     {"tokens", &run.tokens},   {"val-tokens", &run.val_tokens}};
  for (const auto& [name, values] : lists) {
    if (!values->empty()) json[name] = *values;
  }
  for (const auto& [name, size] : t.dims) json["dim"].push_back(name + "=" + std::to_string(size));
  for (const ParameterGroup& group : t.groups) {
    std::string text = group.glob + ":";
    if (group.lr) text += "lr=" + Json(*group.lr).dump();
    if (group.weight_decay) text += std::string(group.lr ? "," : "") + "weight-decay=" + Json(*group.weight_decay).dump();
    json["param-group"].push_back(text);
  }
}

void AddOptimizer(const TrainingOptions& t, Json& json) {
  const bool adam = t.optimizer == "adam" || t.optimizer == "adamw";
  const bool lion = t.optimizer == "lion";
  json["optimizer"] = t.optimizer;
  json["lr"] = t.lr.value_or(DefaultLearningRate(t.optimizer));
  if (t.optimizer == "sgd") {
    json["momentum"] = t.momentum;
    json["nesterov"] = t.nesterov;
  }
  if (adam || lion) {
    json["betas"] = Json(t.beta1.value_or(0.9)).dump() + "," + Json(t.beta2.value_or(lion ? 0.99 : 0.999)).dump();
  }
  if (adam || t.optimizer == "adagrad") json["eps"] = t.eps.value_or(adam ? 1e-8 : 1e-10);
  json["weight-decay"] = t.weight_decay.value_or(t.optimizer == "adamw" ? 0.01 : 0.0);
  if (t.clip_grad > 0) json["clip-grad"] = t.clip_grad;
  json["schedule"] = t.schedule;
  json["warmup-steps"] = t.warmup_steps;
  if (t.schedule == "linear" || t.schedule == "cosine" || t.schedule == "wsd") json["min-lr"] = t.min_lr;
  if (t.schedule == "step") {
    json["step-size"] = t.step_size;
    json["gamma"] = t.gamma;
  }
  if (t.schedule == "wsd" && t.decay_steps) json["decay-steps"] = *t.decay_steps;
}

void AddLoss(const TrainingOptions& t, Json& json) {
  json["loss"] = t.loss;
  if (!t.loss_on.empty()) json["loss-on"] = t.loss_on;
  if (!t.labels.empty()) json["labels"] = t.labels;
  if (t.loss == "ce" || t.loss == "nll") json["ignore-index"] = t.ignore_index;
  if (t.loss == "ce") json["label-smoothing"] = t.label_smoothing;
  json["bn"] = t.batch_norm;
  json["dropout"] = t.dropout;
  json["untie"] = t.untie;
}

}  // namespace

std::string EffectiveConfig(const RunOptions& run, int64_t steps) {
  const TrainingOptions& t = run.training;
  Json json;
  json["model"] = run.model[0];
  AddLoss(t, json);
  AddOptimizer(t, json);
  json["batch-size"] = t.batch_size;
  json["global-batch-size"] = t.global_batch();
  json["accum"] = t.accumulation;
  json["ranks"] = t.ranks;
  json["zero"] = t.zero;
  if (t.bucket_mb) json["bucket-mb"] = std::isinf(*t.bucket_mb) ? Json("inf") : Json(*t.bucket_mb);
  json["overlap"] = t.overlap ? "on" : "off";
  json["reduce"] = t.reduce_sum ? "sum" : "mean";
  json["timeout"] = t.timeout_seconds;
  if (t.threads > 0) json["threads"] = t.threads;
  json["seed"] = t.seed;
  json["drop-last"] = run.drop_last;
  json["no-shuffle"] = run.no_shuffle;
  if (run.epochs) json["epochs"] = *run.epochs;
  if (run.max_steps) json["max-steps"] = *run.max_steps;
  json["planned-steps"] = steps;
  if (run.seq_len > 0) json["seq-len"] = run.seq_len;
  if (!run.tokens_to.empty()) json["tokens-to"] = run.tokens_to;
  if (run.target_shift != 1) json["target-shift"] = run.target_shift;
  if (run.save_every) json["save-every"] = *run.save_every;
  if (run.eval_every) json["eval-every"] = *run.eval_every;
  if (run.keep > 0) json["keep"] = run.keep;
  json["log-every"] = run.log_every;
  AddLists(run, json);
  return json.dump(2) + "\n";
}

Status ApplyStoredConfig(const std::string& stored, const std::string& file, OptionSet& options, RunOptions& run) {
  Json json = Json::parse(stored, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("global-batch-size")) {
    return InvalidDataError("'" + file + "' is not the configuration of a run");
  }
  const int64_t global_batch = json["global-batch-size"].get<int64_t>();
  for (const char* derived : {"model", "planned-steps", "batch-size"}) json.erase(derived);
  if (options.given("batch-size") || run.override_resume) json.erase("global-batch-size");
  if (options.given("max-steps")) json.erase("epochs");
  RETURN_IF_ERROR(options.ApplyConfig(json.dump(), file));
  if (run.override_resume || !options.given("batch-size") || !run.batch_size) return OkStatus();
  const int64_t wanted = *run.batch_size * run.training.ranks * run.training.accumulation;
  if (wanted == global_batch) return OkStatus();
  return UsageError("the run has a global batch of " + std::to_string(global_batch) + ", --batch-size " +
                    std::to_string(*run.batch_size) + " x " + std::to_string(run.training.ranks) + " ranks x " +
                    std::to_string(run.training.accumulation) + " micro-batches is " + std::to_string(wanted) +
                    "; leave --batch-size out, or add --override");
}

}  // namespace onnxtrain
