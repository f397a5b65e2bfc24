// SPDX-License-Identifier: Apache-2.0
// The loop of `train`: steps, validation, checkpoints, metrics, and every way a run can end.
#ifndef ONNXTRAIN_TOOLS_TRAIN_LOOP_H_
#define ONNXTRAIN_TOOLS_TRAIN_LOOP_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "runtime/local_session.h"
#include "tools/console.h"
#include "tools/evaluation.h"
#include "tools/run_data.h"
#include "tools/run_folder.h"
#include "tools/run_length.h"
#include "tools/stop_signal.h"

namespace onnxtrain {

// What a run came to: the last table.
struct TrainSummary {
  int64_t steps = 0;
  int64_t samples = 0;
  std::optional<double> loss;
  std::optional<double> val_loss;
  std::optional<double> val_accuracy;
  double seconds = 0;
  std::string checkpoint;
  std::string model;
  int exit_code = 0;
};

class TrainLoop {
 public:
  // Borrows everything.
  TrainLoop(RunOptions& run, RunData& data, LocalSession& session, RunFolder& folder, Console& console)
      : run_(run), data_(data), session_(session), folder_(folder), console_(console) {}

  // Starts where a checkpoint says, or at the beginning. NonFinite, InvalidData and errors of the file system end the
  // run with what was reached saved.
  StatusOr<TrainSummary> Run(const ResumePoint& start);

 private:
  Status Prepare(const ResumePoint& start);
  Status OneStep();
  Status Validate();
  Status Save();
  // The state and the batch are saved; `cause` names node and tensor where it could be found.
  Status EndNotFinite(const std::string& what, const Status& cause);
  // Once, when all traced steps are done or the run ends before.
  Status WriteTrace();
  Status EndWithError(const Status& error);
  void ShowStep(const StepResult& result, double step_ms);

  RunOptions& run_;
  RunData& data_;
  LocalSession& session_;
  RunFolder& folder_;
  Console& console_;
  StopSignal stop_;
  std::unique_ptr<BatchFeeds> batches_;
  std::optional<Evaluation> evaluation_;
  SamplerPosition position_;
  int64_t step_ = 0;
  int64_t planned_ = 0;
  int64_t saved_step_ = -1;
  bool trace_written_ = false;
  TrainSummary summary_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_TRAIN_LOOP_H_
