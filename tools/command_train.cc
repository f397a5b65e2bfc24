// SPDX-License-Identifier: Apache-2.0
// onnx-train train: opens model, data and run folder, and hands them to the loop.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "graph/nearest_name.h"
#include "runtime/data/array_file.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/environment.h"
#include "tools/model_argument.h"
#include "tools/run_config.h"
#include "tools/train_loop.h"

namespace onnxtrain {
namespace {

void DeclareTrain(OptionSet& options, RunOptions& run) {
  AddModelOptions(options, run);
  AddOptimizerOptions(options, run);
  options.Section("Length");
  const auto at_least = [](std::optional<int64_t>* target, int64_t least) {
    return [target, least](const std::string& value) -> Status {
      ASSIGN_OR_RETURN(const int64_t number, ParseInt(value));
      if (number < least) return UsageError("must be at least " + std::to_string(least) + ", found " + value);
      *target = number;
      return OkStatus();
    };
  };
  options.Custom("epochs", "E", "passes over the data (1)", at_least(&run.epochs, 1));
  options.Custom("max-steps", "N", "steps from the start of the run; repeats the data", at_least(&run.max_steps, 0));
  options.Flag("drop-last", &run.drop_last, "leave out the last, partial batch of an epoch");
  options.Flag("no-shuffle", &run.no_shuffle, "samples in the order of the file");
  options.Flag("deterministic", &run.deterministic, "the same bits every time; always so here");
  AddBatchOptions(options, run);
  AddDataOptions(options, run);
  options.String("init-weights", &run.init_weights, "FILE", "safetensors with weights by name");
  options.Section("Running");
  options.String("out", &run.out, "RUN", "the run folder");
  options.Custom("save-every", "N", "checkpoint every N steps (each epoch)", at_least(&run.save_every, 1));
  options.Custom("eval-every", "N", "validate every N steps (each epoch)", at_least(&run.eval_every, 1));
  options.Int("keep", &run.keep, "N", "newest checkpoints to keep (all)", 1);
  options.Int("log-every", &run.log_every, "N", "progress every N steps (1)", 1);
  options.Flag("resume", &run.resume, "go on from the newest checkpoint of --out");
  options.Flag("overwrite", &run.overwrite, "discard what --out holds");
  options.Flag("override", &run.override_resume, "let a resumed run change its global batch");
  options.Flag("dry-run", &run.dry_run, "prepare everything, train nothing");
  AddOutputOptions(options, run);
}

Status CheckLength(const OptionSet& options, RunOptions& run, int64_t planned) {
  TrainingOptions& t = run.training;
  t.max_steps = planned;
  const bool bounded = t.schedule == "linear" || t.schedule == "cosine" || t.schedule == "wsd";
  if (options.given("warmup-steps") && t.warmup_steps >= planned && planned > 0) {
    return UsageError("--warmup-steps " + std::to_string(t.warmup_steps) + " must be below the " +
                      std::to_string(planned) + " steps of the run");
  }
  if (bounded && planned == 0) t.schedule = "constant";  // nothing will be run
  return OkStatus();
}

Status LoadInitialWeights(const std::string& file, TrainingSession& session, Console& console) {
  ASSIGN_OR_RETURN(const std::vector<NamedTensor> tensors, ReadNamedArrays(file));
  std::vector<std::string> names;
  for (const TensorInfo& tensor : session.tensors()) names.push_back(tensor.name);
  for (const auto& [name, tensor] : tensors) {
    const Status written = session.WriteTensor(name, tensor);
    if (!written.ok()) return written.Prepend("--init-weights '" + file + "', tensor '" + name + "'" + DidYouMean(name, names));
  }
  console.Note("read " + std::to_string(tensors.size()) + " tensors from " + file);
  return OkStatus();
}

void PrintStart(const RunOptions& run, const TrainingSession& session, int64_t samples, int64_t planned, Console& console) {
  int64_t elements = 0;
  for (const TensorInfo& tensor : session.tensors()) {
    if (tensor.verdict == "trainable") elements += tensor.type.elements();
  }
  const TrainingOptions& t = run.training;
  console.Note("training " + std::to_string(elements) + " parameters on " + std::to_string(samples) + " samples, " +
               std::to_string(planned) + " steps of " + std::to_string(t.global_batch()) + " (" +
               std::to_string(t.batch_size) + " x " + std::to_string(t.ranks) + " ranks x " +
               std::to_string(t.accumulation) + "), " + std::to_string(t.threads) + " threads, ZeRO-" +
               std::to_string(t.zero) + ", bn " + t.batch_norm + ", dropout " + t.dropout);
  for (const std::string& note : session.notes()) console.Note("note: " + note);
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

void PrintSummary(const TrainSummary& summary, bool json) {
  if (json) {
    nlohmann::ordered_json out;
    out["steps"] = summary.steps;
    out["samples"] = summary.samples;
    if (summary.loss) out["loss"] = *summary.loss;
    if (summary.val_loss) out["val_loss"] = *summary.val_loss;
    if (summary.val_accuracy) out["val_accuracy"] = *summary.val_accuracy;
    out["seconds"] = summary.seconds;
    out["checkpoint"] = summary.checkpoint;
    out["model"] = summary.model;
    Console::Print(out.dump(2));
    return;
  }
  std::vector<std::vector<std::string>> rows{{"steps", std::to_string(summary.steps)},
                                             {"samples", std::to_string(summary.samples)}};
  if (summary.loss) rows.push_back({"loss", Number(*summary.loss)});
  if (summary.val_loss) rows.push_back({"val_loss", Number(*summary.val_loss)});
  if (summary.val_accuracy) rows.push_back({"val_accuracy", Number(*summary.val_accuracy)});
  rows.push_back({"seconds", Number(summary.seconds)});
  rows.push_back({"checkpoint", summary.checkpoint});
  rows.push_back({"model", summary.model});
  Console::Print(Table(rows));
}

// The state of the newest checkpoint; step 0 where there is none.
StatusOr<int64_t> Resume(RunFolder& folder, TrainingSession& session, Console& console) {
  ASSIGN_OR_RETURN(const std::optional<std::string> newest, folder.NewestCheckpoint());
  if (!newest) {
    console.Note("no checkpoint in '" + folder.path() + "': starting from the beginning");
    return int64_t{0};
  }
  RETURN_IF_ERROR(session.LoadCheckpoint(*newest));
  ASSIGN_OR_RETURN(const ResumePoint point, folder.ReadResumePoint(*newest));
  console.Note("resumed from " + *newest);
  return point.step;
}

// A new run's folder is made when everything that can be refused was; a resumed one comes opened.
StatusOr<int> Train(std::unique_ptr<RunFolder> folder, FileSystem& files, const std::string& file, OptionSet& options,
                    RunOptions& run, Console& console) {
  ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Load(file));
  ASSIGN_OR_RETURN(RunData data, OpenRunData(model, run));
  for (const std::string& note : data.notes) console.Note("note: " + note);
  if (!data.train) return UsageError("no training data: give --train NAME=FILE or --tokens GLOB");
  ASSIGN_OR_RETURN(const Sampler sampler, Sampler::Create(TrainSampler(run, data)));
  const int64_t planned = PlannedSteps(run, sampler.batches_per_epoch());
  RETURN_IF_ERROR(CheckLength(options, run, planned));
  ASSIGN_OR_RETURN(std::unique_ptr<TrainingSession> session, TrainingSession::Create(file, run.training));
  if (!run.init_weights.empty()) RETURN_IF_ERROR(LoadInitialWeights(run.init_weights, *session, console));
  if (folder == nullptr) {
    ASSIGN_OR_RETURN(folder, RunFolder::Open(files, run.out, run.resume, run.overwrite));
  }
  int64_t first_step = 0;
  if (run.resume) {
    ASSIGN_OR_RETURN(first_step, Resume(*folder, *session, console));
  }
  RETURN_IF_ERROR(folder->WriteText("config.json", EffectiveConfig(run, planned)));
  RETURN_IF_ERROR(folder->StartMetrics(first_step));
  PrintStart(run, *session, data.train->samples(), planned, console);
  TrainLoop loop(run, data, *session, *folder, console);
  ASSIGN_OR_RETURN(const TrainSummary summary, loop.Run(first_step));
  PrintSummary(summary, run.json);
  return summary.exit_code;
}

StatusOr<int> DryRun(const std::string& file, OptionSet& options, RunOptions& run, Console& console) {
  ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Load(file));
  ASSIGN_OR_RETURN(RunData data, OpenRunData(model, run));
  if (!data.train) return UsageError("no training data: give --train NAME=FILE or --tokens GLOB");
  ASSIGN_OR_RETURN(const Sampler sampler, Sampler::Create(TrainSampler(run, data)));
  const int64_t planned = PlannedSteps(run, sampler.batches_per_epoch());
  RETURN_IF_ERROR(CheckLength(options, run, planned));
  ASSIGN_OR_RETURN(std::unique_ptr<TrainingSession> session, TrainingSession::Create(file, run.training));
  PrintStart(run, *session, data.train->samples(), planned, console);
  console.Note("dry run: nothing was trained or written");
  return 0;
}

}  // namespace

StatusOr<int> RunTrain(const std::vector<std::string>& arguments) {
  RunOptions run;
  OptionSet options;
  DeclareTrain(options, run);
  RETURN_IF_ERROR(options.Parse(arguments));
  if (options.help_wanted()) {
    Console::Print(options.Help("train", "trains a model on your data"));
    return 0;
  }
  if (run.out.empty() && !run.dry_run) return UsageError("--out RUN is needed (or --dry-run)");
  if (run.resume && run.overwrite) return UsageError("--resume and --overwrite contradict each other");
  Console console(run.quiet);
  RETURN_IF_ERROR(CheckWorld());
  ASSIGN_OR_RETURN(const std::string file, ModelFile(run.model[0]));
  if (run.dry_run) {
    RETURN_IF_ERROR(CheckTogether(options, run));
    return DryRun(file, options, run, console);
  }
  PosixFileSystem files;
  std::unique_ptr<RunFolder> folder;
  if (run.resume) {
    ASSIGN_OR_RETURN(folder, RunFolder::Open(files, run.out, run.resume, run.overwrite));
    const std::string stored = folder->StoredConfig();
    if (!stored.empty()) RETURN_IF_ERROR(ApplyStoredConfig(stored, run.out + "/config.json", options, run));
  } else if (files.Exists(run.out + "/config.json") && !run.overwrite) {
    return UsageError("'" + run.out + "' already holds a run: go on with --resume, or discard it with --overwrite");
  }
  RETURN_IF_ERROR(CheckTogether(options, run));
  return Train(std::move(folder), files, file, options, run, console);
}

}  // namespace onnxtrain
