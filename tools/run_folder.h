// SPDX-License-Identifier: Apache-2.0
// The run folder: config.json, metrics.jsonl, checkpoints/, model.onnx, plan.json, events.out.tfevents.*; locked while
// a run uses it. Everything is written so that it appears whole or not at all, or line by line.
#ifndef ONNXTRAIN_TOOLS_RUN_FOLDER_H_
#define ONNXTRAIN_TOOLS_RUN_FOLDER_H_

#include <memory>
#include <optional>
#include <string>

#include "runtime/data/sampler.h"
#include "runtime/file_system.h"
#include "runtime/training_session.h"
#include "tools/run_options.h"

namespace onnxtrain {

// Where a run goes on: kept as the metadata of a checkpoint.
struct ResumePoint {
  int64_t step = 0;  // of the next step
  SamplerPosition position;
};

struct StepLine {
  StepResult result;
  int64_t samples = 0;
  double step_ms = 0;
};

class RunFolder {
 public:
  // A folder that already holds a run is Usage without `resume` or `overwrite`; one in use is Usage too. `files` is
  // borrowed.
  static StatusOr<std::unique_ptr<RunFolder>> Open(FileSystem& files, const std::string& path, bool resume,
                                                   bool overwrite);
  virtual ~RunFolder() = default;

  virtual const std::string& path() const = 0;
  virtual Status WriteText(const std::string& name, const std::string& text) = 0;
  // "" when there is none: a folder that is new.
  virtual std::string StoredConfig() const = 0;
  // The newest complete checkpoint; none when there is none.
  virtual StatusOr<std::optional<std::string>> NewestCheckpoint() = 0;
  virtual StatusOr<ResumePoint> ReadResumePoint(const std::string& checkpoint) = 0;
  // Cuts lines at or after `step` and goes on writing behind them.
  virtual Status StartMetrics(int64_t step) = 0;
  virtual Status AppendStep(const StepLine& line) = 0;
  virtual Status AppendValidation(int64_t step, const EvalResult& result) = 0;
  // State, then model.onnx; prunes to the newest `keep` (0: all). Returns the checkpoint's folder.
  virtual StatusOr<std::string> Save(TrainingSession& session, const ResumePoint& point, int64_t keep) = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_RUN_FOLDER_H_
