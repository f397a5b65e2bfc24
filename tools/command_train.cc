// SPDX-License-Identifier: Apache-2.0
// onnx-train train: opens model, data and run folder, and hands them to the loop.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/environment.h"
#include "tools/model_argument.h"
#include "tools/number_text.h"
#include "tools/pass_dump.h"
#include "tools/run_config.h"
#include "tools/run_session.h"
#include "tools/train_loop.h"

namespace onnxtrain {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPlanLinks[] = {10, 100};  // Gbit/s that plan.json is simulated over, as `plan` does by default

// "BatchNormalization as exported: training in 2 of 3 nodes"
void PrintModes(const OnnxModel& model, const std::string& op, Console& console) {
  int64_t nodes = 0, training = 0, computed = 0;
  for (const ModeNode& node : model.mode_nodes()) {
    if (node.op != op) continue;
    ++nodes;
    training += node.known && node.training ? 1 : 0;
    computed += node.known ? 0 : 1;
  }
  if (nodes == 0) return;
  console.Note(op + " as exported: training in " + std::to_string(training) + " of " + std::to_string(nodes) +
               " nodes" + (computed > 0 ? ", computed by the model in " + std::to_string(computed) : ""));
}

void PrintStart(const RunOptions& run, const LocalSession& session, int64_t samples, int64_t planned,
                Console& console) {
  int64_t elements = 0;
  for (const TensorInfo& tensor : session.tensors()) {
    if (tensor.verdict == "trainable") elements += tensor.type.elements();
  }
  const TrainingOptions& t = run.training;
  console.Note("training " + std::to_string(elements) + " parameters on " + std::to_string(samples) + " samples, " +
               std::to_string(planned) + " steps of " + std::to_string(t.global_batch()) + " (" +
               std::to_string(t.batch_size) + " x " + std::to_string(t.ranks) + " ranks x " +
               std::to_string(t.accumulation) + "), " + std::to_string(t.threads) + " threads, ZeRO-" +
               std::to_string(t.zero) + ", " + (t.dtype == DType::kBfloat16 ? "bf16" : "f32") + " on " + t.device +
               ", bn " + t.batch_norm + ", dropout " + t.dropout);
  if (t.batch_norm == "as-exported") PrintModes(session.model(), "BatchNormalization", console);
  if (t.dropout == "as-exported") PrintModes(session.model(), "Dropout", console);
  for (const std::string& note : session.notes()) console.Note("note: " + note);
}

void PrintSummary(const TrainSummary& summary, bool json) {
  if (json) {
    Json out;
    out["steps"] = summary.steps;
    out["samples"] = summary.samples;
    if (summary.loss) out["loss"] = NumberJson<Json>(*summary.loss);
    if (summary.val_loss) out["val_loss"] = NumberJson<Json>(*summary.val_loss);
    if (summary.val_accuracy) out["val_accuracy"] = *summary.val_accuracy;
    out["seconds"] = summary.seconds;
    out["checkpoint"] = summary.checkpoint;
    out["model"] = summary.model;
    Console::Print(JsonText(out));
    return;
  }
  std::vector<std::vector<std::string>> rows{{"steps", std::to_string(summary.steps)},
                                             {"samples", std::to_string(summary.samples)}};
  if (summary.loss) rows.push_back({"loss", NumberText(*summary.loss)});
  if (summary.val_loss) rows.push_back({"val_loss", NumberText(*summary.val_loss)});
  if (summary.val_accuracy) rows.push_back({"val_accuracy", NumberText(*summary.val_accuracy)});
  rows.push_back({"seconds", NumberText(summary.seconds)});
  rows.push_back({"checkpoint", summary.checkpoint});
  rows.push_back({"model", summary.model});
  Console::Print(Table(rows));
}

// The state of the newest checkpoint; the beginning where there is none.
StatusOr<ResumePoint> Resume(RunFolder& folder, LocalSession& session, Console& console) {
  ASSIGN_OR_RETURN(const std::optional<std::string> newest, folder.NewestCheckpoint());
  if (!newest) {
    console.Note("no checkpoint in '" + folder.path() + "': starting from the beginning");
    return ResumePoint{};
  }
  RETURN_IF_ERROR(session.LoadCheckpoint(*newest));
  ASSIGN_OR_RETURN(const ResumePoint point, folder.ReadResumePoint(*newest));
  console.Note("resumed from " + *newest);
  return point;
}

// A model whose BatchNormalization computes statistics of the local batch is another one on another number of ranks.
bool UsesBatchStatistics(const OnnxModel& model, const TrainingOptions& options) {
  if (options.batch_norm == "frozen") return false;
  for (const ModeNode& node : model.mode_nodes()) {
    if (node.op == "BatchNormalization" && (options.batch_norm == "train" || node.training || !node.known)) return true;
  }
  return false;
}

struct Prepared {
  RunData data;
  int64_t planned = 0;
  std::unique_ptr<LocalSession> session;
};

// Everything that can be refused is refused here, before anything is written.
StatusOr<Prepared> Prepare(RunOptions& run, const StoredRun& stored, Console& console) {
  ASSIGN_OR_RETURN(OpenedRun opened, OpenRun(run, console));
  if (!opened.data.train) return UsageError("no training data: give --train NAME=FILE or --tokens GLOB");
  Prepared prepared;
  ASSIGN_OR_RETURN(prepared.planned, ResolveLength(run, opened.data));
  RETURN_IF_ERROR(CheckResumed(stored, run, prepared.planned, UsesBatchStatistics(opened.model, run.training)));
  prepared.data = std::move(opened.data);
  ASSIGN_OR_RETURN(prepared.session, CreateSession(std::move(opened.model), run));
  return prepared;
}

Status WriteDescriptions(RunFolder& folder, const RunOptions& run, Prepared& prepared) {
  RETURN_IF_ERROR(folder.WriteText("config.json", EffectiveConfig(run, prepared.planned)));
  ASSIGN_OR_RETURN(const PlanReport plan, prepared.session->Report(prepared.session->main_graph(),
                                                                   {std::begin(kPlanLinks), std::end(kPlanLinks)}));
  RETURN_IF_ERROR(folder.WriteText("plan.json", PlanJson(plan)));
  if (!run.dump_passes) return OkStatus();
  return BuildAndDump(prepared.session->model(), run.training, folder.path() + "/passes").status();
}

// `folder` comes opened for a resumed run; a new one is made when everything that can be refused was.
StatusOr<int> Train(std::unique_ptr<RunFolder> folder, FileSystem& files, const StoredRun& stored, RunOptions& run,
                    Console& console) {
  ASSIGN_OR_RETURN(Prepared prepared, Prepare(run, stored, console));
  if (folder == nullptr) {
    ASSIGN_OR_RETURN(folder, RunFolder::Open(files, run.out, run.resume, run.overwrite));
  }
  ResumePoint start;
  if (run.resume) {
    ASSIGN_OR_RETURN(start, Resume(*folder, *prepared.session, console));
  }
  RETURN_IF_ERROR(WriteDescriptions(*folder, run, prepared));
  RETURN_IF_ERROR(folder->StartMetrics(start.step));
  PrintStart(run, *prepared.session, prepared.data.train->samples(), prepared.planned, console);
  TrainLoop loop(run, prepared.data, *prepared.session, *folder, console);
  ASSIGN_OR_RETURN(const TrainSummary summary, loop.Run(start));
  PrintSummary(summary, run.json);
  return summary.exit_code;
}

StatusOr<int> DryRun(RunOptions& run, Console& console) {
  ASSIGN_OR_RETURN(const Prepared prepared, Prepare(run, {}, console));
  PrintStart(run, *prepared.session, prepared.data.train->samples(), prepared.planned, console);
  console.Note("dry run: nothing was trained or written");
  if (run.json)
    Console::Print(
        JsonText(Json{{"dry_run", true}, {"steps", prepared.planned}, {"samples", prepared.data.train->samples()}}));
  return 0;
}

// Overwriting the folder that MODEL is in would discard MODEL.
Status CheckOverwrite(const RunOptions& run, const std::string& model) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(model, error).parent_path();
  if (!run.overwrite || !std::filesystem::equivalent(folder, run.out, error)) return OkStatus();
  return UsageError("--overwrite would discard MODEL, which lies in '" + run.out + "'; choose another --out");
}

Status CheckRunning(const RunOptions& run) {
  if (run.out.empty() && !run.dry_run) return UsageError("--out RUN is needed (or --dry-run)");
  if (run.resume && run.overwrite) return UsageError("--resume and --overwrite contradict each other");
  if (run.resume && run.dry_run) return UsageError("--resume and --dry-run contradict each other");
  if (run.override_resume && !run.resume) return UsageError("--override goes with --resume");
  return OkStatus();
}

}  // namespace

StatusOr<int> RunTrain(const std::vector<std::string>& arguments) {
  RunOptions run;
  OptionSet options;
  AddTrainingOptions(options, run);
  AddRunningOptions(options, run);
  AddOutputOptions(options, run);
  options.ShowOnly({"out", "resume", "save-every", "trace", "json", "quiet"});
  RETURN_IF_ERROR(options.Parse(arguments));
  if (options.help_wanted()) {
    Console::Print(options.Help("train", "trains a model on your data"));
    return 0;
  }
  RETURN_IF_ERROR(CheckRunning(run));
  Console console(run.quiet);
  RETURN_IF_ERROR(CheckWorld(run.training.ranks));
  ASSIGN_OR_RETURN(const std::string model, ModelFile(run.model[0]));
  RETURN_IF_ERROR(CheckOverwrite(run, model));
  if (run.dry_run) {
    RETURN_IF_ERROR(CheckTogether(options, run));
    return DryRun(run, console);
  }
  PosixFileSystem files;
  std::unique_ptr<RunFolder> folder;
  StoredRun stored;
  if (run.resume) {
    ASSIGN_OR_RETURN(folder, RunFolder::Open(files, run.out, run.resume, run.overwrite));
    const std::string config = folder->StoredConfig();
    if (!config.empty()) {
      ASSIGN_OR_RETURN(stored, ApplyStoredConfig(config, run.out + "/config.json", options));
    }
  } else if (files.Exists(run.out + "/config.json") && !run.overwrite) {
    return UsageError("'" + run.out + "' already holds a run: go on with --resume, or discard it with --overwrite");
  }
  RETURN_IF_ERROR(CheckTogether(options, run));
  RETURN_IF_ERROR(CheckGlobalBatch(stored, run));
  return Train(std::move(folder), files, stored, run, console);
}

}  // namespace onnxtrain
