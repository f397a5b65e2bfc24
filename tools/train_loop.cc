// SPDX-License-Identifier: Apache-2.0
#include "tools/train_loop.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/data/npz.h"

namespace onnxtrain {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

bool Every(const std::optional<int64_t>& interval, int64_t step) { return interval && (step + 1) % *interval == 0; }

std::string StepName(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof(text), "step-%08lld", static_cast<long long>(step));
  return text;
}

}  // namespace

int64_t PlannedSteps(const RunOptions& run, int64_t steps_per_epoch) {
  const int64_t by_epochs = run.epochs ? *run.epochs * steps_per_epoch : INT64_MAX;
  const int64_t by_steps = run.max_steps.value_or(INT64_MAX);
  if (!run.epochs && !run.max_steps) return steps_per_epoch;
  return std::min(by_epochs, by_steps);
}

SamplerOptions TrainSampler(const RunOptions& run, const RunData& data) {
  SamplerOptions sampler;
  sampler.samples = data.train->samples();
  sampler.global_batch = run.training.global_batch();
  sampler.shuffle = !run.no_shuffle;
  sampler.seed = run.training.seed;
  sampler.drop_last = run.drop_last || data.fixed_batch.has_value();
  return sampler;
}

Status TrainLoop::Prepare(int64_t first_step) {
  ASSIGN_OR_RETURN(batches_, BatchFeeds::Create(*data_.train, TrainSampler(run_, data_)));
  if (data_.val) {
    ASSIGN_OR_RETURN(evaluation_, Evaluation::Create(*data_.val, run_.training.batch_size * run_.training.ranks,
                                                     data_.fixed_batch.has_value()));
  }
  step_ = first_step;
  position_ = batches_->sampler().PositionOfStep(first_step);
  planned_ = PlannedSteps(run_, batches_->sampler().batches_per_epoch());
  return OkStatus();
}

StatusOr<TrainSummary> TrainLoop::Run(int64_t first_step) {
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(Prepare(first_step));
  while (step_ < planned_ && stop_.received() == 0) RETURN_IF_ERROR(OneStep());
  console_.EndProgress();
  RETURN_IF_ERROR(Save());
  if (stop_.received() != 0) {
    console_.Note(stop_.name() + ": stopped after step " + std::to_string(step_) + " and saved; go on with --resume --out " +
                  folder_.path());
    summary_.exit_code = stop_.exit_code();
  }
  summary_.steps = step_;
  summary_.seconds = MillisecondsSince(start) / 1000;
  summary_.model = folder_.path() + "/model.onnx";
  return summary_;
}

Status TrainLoop::OneStep() {
  const Clock::time_point start = Clock::now();
  const Status loaded = batches_->Load(position_);
  if (!loaded.ok()) return EndWithError(loaded);
  const StatusOr<StepResult> result = session_.Step(batches_->feeds(), batches_->samples());
  if (!result.ok()) return EndWithError(result.status());
  const double step_ms = MillisecondsSince(start);
  StepResult shown = *result;
  shown.step = step_;
  RETURN_IF_ERROR(folder_.AppendStep({shown, batches_->samples(), step_ms}));
  if (!result->applied) return EndNotFinite(*result);
  summary_.loss = result->loss;
  summary_.samples += batches_->samples();
  ShowStep(shown, step_ms);
  const int64_t epoch = position_.epoch;
  position_ = batches_->sampler().Next(position_);
  const bool epoch_ends = position_.epoch != epoch;
  const bool last = step_ + 1 == planned_;
  const int64_t finished = step_++;
  if (evaluation_ && (run_.eval_every ? Every(run_.eval_every, finished) || last : epoch_ends || last)) {
    RETURN_IF_ERROR(Validate());
  }
  if (run_.save_every ? Every(run_.save_every, finished) : epoch_ends) return Save();
  return OkStatus();
}

void TrainLoop::ShowStep(const StepResult& result, double step_ms) {
  if ((result.step + 1) % run_.log_every != 0 && step_ + 1 != planned_) return;
  char text[160];
  std::snprintf(text, sizeof(text), "step %lld/%lld  loss %.5g  lr %.3g  grad %.3g  %.1f ms  %.0f samples/s",
                static_cast<long long>(result.step + 1), static_cast<long long>(planned_), result.loss,
                result.learning_rate, result.grad_norm, step_ms,
                static_cast<double>(batches_->samples()) * 1000 / step_ms);
  console_.Progress(result.step + 1, planned_, text);
}

Status TrainLoop::Validate() {
  ASSIGN_OR_RETURN(const EvalResult result, evaluation_->Run(session_));
  summary_.val_loss = result.loss_sum / result.weight;
  char text[96];
  std::snprintf(text, sizeof(text), "validation after step %lld: loss %.5g", static_cast<long long>(step_),
                *summary_.val_loss);
  std::string line = text;
  if (result.counted > 0) {
    summary_.val_accuracy = static_cast<double>(result.correct) / static_cast<double>(result.counted);
    std::snprintf(text, sizeof(text), "  accuracy %.4f", *summary_.val_accuracy);
    line += text;
  }
  console_.Note(line);
  return folder_.AppendValidation(step_ - 1, result);
}

Status TrainLoop::Save() {
  if (saved_step_ == step_) return OkStatus();
  ASSIGN_OR_RETURN(summary_.checkpoint, folder_.Save(session_, {step_, position_}, run_.keep));
  saved_step_ = step_;
  return OkStatus();
}

// The batch is written for each rank, so that `grad --feed` can look at it.
Status TrainLoop::EndNotFinite(const StepResult& result) {
  console_.EndProgress();
  RETURN_IF_ERROR(Save());
  PosixFileSystem files;
  const std::string folder = folder_.path() + "/nonfinite";
  RETURN_IF_ERROR(files.CreateFolders(folder));
  for (int rank = 0; rank < run_.training.ranks; ++rank) {
    const Slice slice = SliceOf(batches_->samples(), run_.training.ranks, rank);
    const std::vector<std::pair<std::string, Tensor>> rows = batches_->Rows(slice.begin, slice.size);
    const std::string file = folder + "/" + StepName(step_) + ".rank-" + std::to_string(rank) + ".npz";
    RETURN_IF_ERROR(WriteNpz(files, file, std::span<const NamedTensor>(rows)));
  }
  const Status cause = session_.ExplainNonFinite(batches_->feeds(), batches_->samples());
  char text[160];
  std::snprintf(text, sizeof(text), "step %lld: loss %g, gradient norm %g; nothing was updated", static_cast<long long>(step_),
                result.loss, result.grad_norm);
  return NonFiniteError(std::string(text) + (cause.ok() ? "" : "; " + cause.message()) +
                        ". State and batch are saved: " + summary_.checkpoint + ", " + folder);
}

// Nothing is lost: the state before the bad step is saved first.
Status TrainLoop::EndWithError(const Status& error) {
  console_.EndProgress();
  if (error.code() == StatusCode::kInvalidData) RETURN_IF_ERROR(Save());
  return error.Prepend("step " + std::to_string(step_));
}

}  // namespace onnxtrain
