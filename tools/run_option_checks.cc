// SPDX-License-Identifier: Apache-2.0
// What options mean together.
#include "tools/environment.h"
#include "tools/run_options.h"

namespace onnxtrain {

double DefaultLearningRate(const std::string& optimizer) {
  if (optimizer == "adagrad") return 1e-2;
  if (optimizer == "lion") return 1e-4;
  return 1e-3;
}

namespace {

struct UsedBy {
  const char* option;
  std::vector<std::string> values;
};

// An option that the chosen value of `chooser` does not read.
Status CheckUsed(const OptionSet& options, const char* chooser, const std::string& chosen,
                 const std::vector<UsedBy>& table) {
  for (const UsedBy& row : table) {
    if (!options.given(row.option)) continue;
    bool used = false;
    std::string list;
    for (const std::string& value : row.values) {
      used = used || value == chosen;
      list += (list.empty() ? "" : ", ") + value;
    }
    if (!used) {
      return UsageError("--" + std::string(row.option) + " is not used by --" + chooser + " " + chosen +
                        " (it goes with " + list + ")");
    }
  }
  return OkStatus();
}

Status CheckBatch(RunOptions& run) {
  TrainingOptions& t = run.training;
  const int64_t parts = static_cast<int64_t>(t.ranks) * t.accumulation;
  if (run.batch_size) t.batch_size = *run.batch_size;
  if (!run.global_batch_size) return OkStatus();
  if (run.batch_size && *run.batch_size * parts != *run.global_batch_size) {
    return UsageError("--global-batch-size " + std::to_string(*run.global_batch_size) + " contradicts --batch-size " +
                      std::to_string(*run.batch_size) + " x " + std::to_string(t.ranks) + " ranks x " +
                      std::to_string(t.accumulation) + " micro-batches");
  }
  if (*run.global_batch_size % parts != 0) {
    return UsageError("--global-batch-size " + std::to_string(*run.global_batch_size) + " does not divide by " +
                      std::to_string(t.ranks) + " ranks x " + std::to_string(t.accumulation) + " micro-batches");
  }
  run.batch_size = t.batch_size = *run.global_batch_size / parts;
  return OkStatus();
}

}  // namespace

Status CheckTogether(const OptionSet& options, RunOptions& run) {
  const TrainingOptions& t = run.training;
  run.step_chosen = options.given("loss") || options.given("loss-on") || options.given("optimizer");
  RETURN_IF_ERROR(CheckUsed(options, "optimizer", t.optimizer,
                            {{"momentum", {"sgd"}},
                             {"nesterov", {"sgd"}},
                             {"betas", {"adam", "adamw", "lion"}},
                             {"eps", {"adam", "adamw", "adagrad"}}}));
  RETURN_IF_ERROR(CheckUsed(options, "schedule", t.schedule,
                            {{"min-lr", {"linear", "cosine", "wsd"}},
                             {"step-size", {"step"}},
                             {"gamma", {"step"}},
                             {"decay-steps", {"wsd"}}}));
  RETURN_IF_ERROR(CheckUsed(options, "loss", t.loss,
                            {{"label-smoothing", {"ce"}},
                             {"ignore-index", {"ce", "nll"}},
                             {"labels", {"ce", "mse", "bce", "l1", "smooth_l1", "nll"}}}));
  if (t.nesterov && t.momentum == 0) return UsageError("--nesterov needs --momentum above 0");
  if (t.schedule == "step" && t.step_size < 1) return UsageError("--schedule step needs --step-size");
  const bool reduces = t.loss == "sum" || t.loss == "mean" || t.loss == "l2";
  if (t.loss != "auto" && !reduces && t.labels.empty()) return UsageError("--loss " + t.loss + " needs --labels NAME");
  for (const char* tokens : {"tokens", "val-tokens"}) {
    if (options.given(tokens) && run.seq_len < 1) return UsageError("--" + std::string(tokens) + " needs --seq-len T");
  }
  if (options.given("tokens") && options.given("train")) {
    return UsageError("--tokens and --train contradict each other: further inputs of a language model go to --feed");
  }
  if (run.training.threads == 0) run.training.threads = DefaultThreads();
  return CheckBatch(run);
}

}  // namespace onnxtrain
