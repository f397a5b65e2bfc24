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
      {"trainable", &t.trainable}, {"freeze", &t.freeze}, {"no-decay", &t.no_decay}, {"train", &run.train},
      {"val", &run.val},           {"feed", &run.feed},   {"tokens", &run.tokens},   {"val-tokens", &run.val_tokens}};
  for (const auto& [name, values] : lists) {
    if (!values->empty()) json[name] = *values;
  }
  for (const auto& [name, size] : t.dims) json["dim"].push_back(name + "=" + std::to_string(size));
  for (const ParameterGroup& group : t.groups) {
    std::string text = group.glob + ":";
    if (group.lr) text += "lr=" + Json(*group.lr).dump();
    if (group.weight_decay)
      text += std::string(group.lr ? "," : "") + "weight-decay=" + Json(*group.weight_decay).dump();
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

// As --dtype spells it.
std::string_view PrecisionName(DType dtype) { return dtype == DType::kBfloat16 ? "bf16" : "f32"; }

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
  json["threads"] = t.threads;
  json["dtype"] = PrecisionName(t.dtype);
  json["reduce-dtype"] = PrecisionName(t.reduce_dtype);
  json["recompute"] = run.recompute;
  json["device"] = t.device;
  json["cuda-graphs"] = t.cuda_graphs;
  json["tf32"] = t.tf32;
  json["fallback"] = t.fallback_to_cpu ? "cpu" : "none";
  if (!t.cache_folder.empty()) json["cache"] = t.cache_folder;
  if (t.memory_limit > 0) json["memory-limit"] = t.memory_limit;
  json["seed"] = t.seed;
  json["deterministic"] = true;
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
  if (run.nan_check) json["nan-check"] = true;
  if (!run.init_weights.empty()) json["init-weights"] = run.init_weights;
  AddLists(run, json);
  return json.dump(2) + "\n";
}

StatusOr<StoredRun> ApplyStoredConfig(const std::string& stored, const std::string& file, OptionSet& options) {
  Json json = Json::parse(stored, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.value("global-batch-size", Json()).is_number_integer()) {
    return InvalidDataError("'" + file + "' is not the configuration of a run");
  }
  StoredRun run;
  run.global_batch = json["global-batch-size"].get<int64_t>();
  if (json.value("planned-steps", Json()).is_number_integer()) run.planned_steps = json["planned-steps"].get<int64_t>();
  if (json.value("ranks", Json()).is_number_integer()) run.ranks = json["ranks"].get<int>();
  if (json.value("schedule", Json()).is_string()) run.schedule = json["schedule"].get<std::string>();
  // The batch of a rank follows from the global one, which stays unless the command line says otherwise.
  for (const char* derived : {"model", "planned-steps", "batch-size"}) json.erase(derived);
  if (options.given("batch-size") || options.given("global-batch-size")) json.erase("global-batch-size");
  // What belonged to another choice goes with it.
  if (options.given("schedule")) {
    for (const char* key : {"min-lr", "step-size", "gamma", "decay-steps"}) json.erase(key);
  }
  if (options.given("device")) {
    for (const char* key : {"cuda-graphs", "tf32", "fallback", "cache"}) json.erase(key);
  }
  if (options.given("optimizer")) {
    for (const char* key : {"lr", "momentum", "nesterov", "betas", "eps", "weight-decay"}) json.erase(key);
  }
  RETURN_IF_ERROR(options.ApplyConfig(json.dump(), file));
  return run;
}

Status CheckGlobalBatch(const StoredRun& stored, const RunOptions& run) {
  const TrainingOptions& t = run.training;
  if (!stored.global_batch || run.override_resume || t.global_batch() == *stored.global_batch) return OkStatus();
  return UsageError("the run has a global batch of " + std::to_string(*stored.global_batch) + ", --batch-size " +
                    std::to_string(t.batch_size) + " x " + std::to_string(t.ranks) + " ranks x " +
                    std::to_string(t.accumulation) + " micro-batches is " + std::to_string(t.global_batch()) +
                    "; leave the batch options out, or add --override");
}

Status CheckResumed(const StoredRun& stored, const RunOptions& run, int64_t planned, bool batch_statistics) {
  if (!stored.global_batch || run.override_resume) return OkStatus();
  const TrainingOptions& t = run.training;
  const bool bounded = t.schedule == "linear" || t.schedule == "cosine" || t.schedule == "wsd";
  if (bounded && stored.planned_steps && *stored.planned_steps != planned) {
    return UsageError(
        "schedule " + t.schedule + " was planned for " + std::to_string(*stored.planned_steps) + " steps, not " +
        std::to_string(planned) +
        ": the length of a run may grow with constant and step schedules only; add --override to change it");
  }
  if (batch_statistics && stored.ranks != 0 && stored.ranks != t.ranks) {
    return UsageError("the run had " + std::to_string(stored.ranks) +
                      " ranks and BatchNormalization takes the statistics of the "
                      "batch of a rank: " +
                      std::to_string(t.ranks) + " ranks are another model; add --override to change it");
  }
  return OkStatus();
}

}  // namespace onnxtrain
