// SPDX-License-Identifier: Apache-2.0
#include "tools/run_folder.h"

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/checkpoint.h"
#include "runtime/metrics.h"
#include "runtime/run_folder.h"
#include "runtime/tensorboard_events.h"

namespace onnxtrain {
namespace {

constexpr const char* kConfig = "config.json";

double TimeOfDay() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class LockedRunFolder : public RunFolder {
 public:
  LockedRunFolder(FileSystem& files, std::string path, RunFolderLock lock)
      : files_(files), path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string& path() const override { return path_; }
  std::string Inside(const std::string& name) const { return path_ + "/" + name; }

  Status WriteText(const std::string& name, const std::string& text) override {
    return WriteFileAtomically(files_, Inside(name),
                               [&](WritableFile& file) { return file.Append(std::string_view(text)); });
  }

  std::string StoredConfig() const override {
    std::ifstream stream(Inside(kConfig));
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
  }

  StatusOr<std::optional<std::string>> NewestCheckpoint() override {
    RETURN_IF_ERROR(CleanCheckpoints(files_, Inside("checkpoints")));
    ASSIGN_OR_RETURN(const CheckpointList list, ListCheckpoints(files_, Inside("checkpoints")));
    if (list.complete.empty() && !list.broken.empty()) return list.broken.back().second;
    if (list.complete.empty()) return std::optional<std::string>();
    return std::optional<std::string>(list.complete.back().folder);
  }

  StatusOr<ResumePoint> ReadResumePoint(const std::string& checkpoint) override {
    ASSIGN_OR_RETURN(const Checkpoint read, ReadCheckpoint(checkpoint));
    const nlohmann::json json = nlohmann::json::parse(read.metadata_json, nullptr, /*allow_exceptions=*/false);
    ResumePoint point;
    for (const auto& [key, number] :
         {std::pair{"step", &point.step}, {"epoch", &point.position.epoch}, {"offset", &point.position.offset}}) {
      const bool held = json.is_object() && json.contains(key) && json[key].is_number_integer();
      *number = held ? json[key].get<int64_t>() : -1;
      if (*number < 0) {
        return InvalidDataError("'" + checkpoint + "/metadata.json' holds no " + key + ": it was not written by train");
      }
    }
    return point;
  }

  Status StartMetrics(int64_t step) override {
    RETURN_IF_ERROR(CutMetrics(files_, Inside("metrics.jsonl"), step));
    ASSIGN_OR_RETURN(metrics_, MetricsWriter::Open(files_, Inside("metrics.jsonl")));
    ASSIGN_OR_RETURN(events_, TensorboardEvents::Create(files_, path_, TimeOfDay(), step));
    return OkStatus();
  }

  Status AppendStep(const StepLine& line) override {
    std::vector<Metric> metrics{{"step", line.result.step},        {"loss", line.result.loss},
                                {"lr", line.result.learning_rate}, {"grad_norm", line.result.grad_norm},
                                {"samples", line.samples},         {"step_ms", line.step_ms}};
    if (!line.result.applied) metrics.push_back({"skipped", true});
    RETURN_IF_ERROR(metrics_->Write(metrics));
    return Scalars(line.result.step, {{"train/loss", static_cast<float>(line.result.loss)},
                                      {"train/lr", static_cast<float>(line.result.learning_rate)},
                                      {"train/grad_norm", static_cast<float>(line.result.grad_norm)},
                                      {"train/step_ms", static_cast<float>(line.step_ms)}});
  }

  Status AppendValidation(int64_t step, const EvalResult& result) override {
    const double loss = result.loss_sum / result.weight;
    std::vector<Metric> metrics{{"step", step}, {"val_loss", loss}};
    std::vector<TensorboardScalar> scalars{{"val/loss", static_cast<float>(loss)}};
    if (result.counted > 0) {
      const double accuracy = static_cast<double>(result.correct) / static_cast<double>(result.counted);
      metrics.push_back({"val_accuracy", accuracy});
      scalars.push_back({"val/accuracy", static_cast<float>(accuracy)});
    }
    metrics.push_back({"val_samples", result.samples});
    RETURN_IF_ERROR(metrics_->Write(metrics));
    return Scalars(step, scalars);
  }

  StatusOr<std::string> Save(TrainingSession& session, const ResumePoint& point, int64_t keep) override {
    const std::string checkpoints = Inside("checkpoints");
    RETURN_IF_ERROR(files_.CreateFolders(checkpoints));
    const std::string folder = checkpoints + "/" + CheckpointName(point.step);
    nlohmann::ordered_json metadata;
    metadata["step"] = point.step;
    metadata["epoch"] = point.position.epoch;
    metadata["offset"] = point.position.offset;
    RETURN_IF_ERROR(session.SaveCheckpoint(folder, metadata.dump()));
    RETURN_IF_ERROR(session.SaveModel(Inside("model.onnx")));
    if (keep > 0) RETURN_IF_ERROR(PruneCheckpoints(files_, checkpoints, keep));
    return folder;
  }

 private:
  Status Scalars(int64_t step, const std::vector<TensorboardScalar>& scalars) {
    return events_->Write(TimeOfDay(), step, scalars);
  }

  FileSystem& files_;
  const std::string path_;
  RunFolderLock lock_;
  std::optional<MetricsWriter> metrics_;
  std::optional<TensorboardEvents> events_;
};

// What runs write; other files stay. The configuration goes last: until then the folder counts as a run.
Status Discard(FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(path));
  for (const std::string& name : names) {
    if (name.starts_with("events.out.tfevents.")) RETURN_IF_ERROR(files.Remove(path + "/" + name));
  }
  for (const char* name :
       {"metrics.jsonl", "checkpoints", "model.onnx", "model.onnx.data", "plan.json", "nonfinite", "passes", kConfig}) {
    RETURN_IF_ERROR(files.Remove(path + "/" + name));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<RunFolder>> RunFolder::Open(FileSystem& files, const std::string& path, bool resume,
                                                     bool overwrite) {
  RETURN_IF_ERROR(files.CreateFolders(path));
  ASSIGN_OR_RETURN(RunFolderLock lock, RunFolderLock::Acquire(path));
  const bool holds_run = files.Exists(path + "/" + kConfig);
  if (holds_run && !resume && !overwrite) {
    return UsageError("'" + path + "' already holds a run: go on with --resume, or discard it with --overwrite");
  }
  if (holds_run && overwrite) {
    RETURN_IF_ERROR(Discard(files, path));
  }
  return std::unique_ptr<RunFolder>(std::make_unique<LockedRunFolder>(files, path, std::move(lock)));
}

}  // namespace onnxtrain
