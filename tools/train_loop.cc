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

// What --trace records.
constexpr int64_t kFirstTracedStep = 2;
constexpr int64_t kLastTracedStep = 4;

bool Every(const std::optional<int64_t>& interval, int64_t step) { return interval && (step + 1) % *interval == 0; }

std::string StepName(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof(text), "step-%08lld", static_cast<long long>(step));
  return text;
}

}  // namespace

Status TrainLoop::Prepare(const ResumePoint& start) {
  const SamplerOptions sampler = TrainSampler(run_, *data_.train, data_.fixed_batch.has_value());
  ASSIGN_OR_RETURN(const Sampler counted, Sampler::Create(sampler));
  planned_ = PlannedSteps(run_, counted.batches_per_epoch());
  step_ = start.step;
  position_ = start.position;
  const int64_t left = std::max<int64_t>(0, planned_ - step_);
  ASSIGN_OR_RETURN(batches_, BatchFeeds::Create(*data_.train, sampler, position_, left));
  if (!data_.val) return OkStatus();
  ASSIGN_OR_RETURN(evaluation_, Evaluation::Create(*data_.val, run_.training.batch_size * run_.training.ranks,
                                                   data_.fixed_batch.has_value()));
  return OkStatus();
}

StatusOr<TrainSummary> TrainLoop::Run(const ResumePoint& from) {
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(Prepare(from));
  while (step_ < planned_ && stop_.received() == 0) RETURN_IF_ERROR(OneStep());
  console_.EndProgress();
  RETURN_IF_ERROR(WriteTrace());
  RETURN_IF_ERROR(Save());
  if (stop_.received() != 0) {
    console_.Note(stop_.name() + ": stopped after step " + std::to_string(step_) +
                  " and saved; go on with --resume --out " + folder_.path());
    summary_.exit_code = stop_.exit_code();
  }
  summary_.steps = step_;
  summary_.seconds = MillisecondsSince(start) / 1000;
  summary_.model = folder_.path() + "/model.onnx";
  return summary_;
}

Status TrainLoop::OneStep() {
  const Clock::time_point start = Clock::now();
  const Status loaded = batches_->Next();
  if (!loaded.ok()) return EndWithError(loaded);
  Status found;  // by --nan-check
  if (run_.nan_check) {
    found = session_.ExplainNonFinite(batches_->feeds(), batches_->samples());
    if (!found.ok() && found.code() != StatusCode::kNonFinite) return EndWithError(found);
    if (!found.ok()) RETURN_IF_ERROR(Save());  // the step is run for its loss alone
  }
  const bool traced = !run_.trace.empty() && step_ >= kFirstTracedStep && step_ <= kLastTracedStep;
  session_.set_tracing(traced);
  const StatusOr<StepResult> result = session_.Step(batches_->feeds(), batches_->samples());
  if (!result.ok()) return EndWithError(result.status());
  const double step_ms = MillisecondsSince(start);
  StepResult shown = *result;
  shown.step = step_;
  RETURN_IF_ERROR(folder_.AppendStep({shown, batches_->samples(), step_ms}));
  if (!result->applied || !found.ok()) {
    char text[96];
    std::snprintf(text, sizeof(text), "loss %g, gradient norm %g", result->loss, result->grad_norm);
    if (found.ok()) found = session_.ExplainNonFinite(batches_->feeds(), batches_->samples());
    return EndNotFinite(text, found);
  }
  if (step_ == kLastTracedStep) RETURN_IF_ERROR(WriteTrace());
  summary_.loss = result->loss;
  summary_.samples += batches_->samples();
  ShowStep(shown, step_ms);
  const int64_t epoch = position_.epoch;
  position_ = batches_->next_position();
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
Status TrainLoop::EndNotFinite(const std::string& what, const Status& cause) {
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
  return NonFiniteError("step " + std::to_string(step_) + ": " + what + "; nothing was updated" +
                        (cause.ok() ? "" : "; " + cause.message()) +
                        ". State and batch are saved: " + summary_.checkpoint + ", " + folder);
}

Status TrainLoop::WriteTrace() {
  if (run_.trace.empty() || trace_written_) return OkStatus();
  trace_written_ = true;
  const std::string json = TraceJson(session_.trace(), session_.stream_names());
  PosixFileSystem files;
  RETURN_IF_ERROR(
      WriteFileAtomically(files, run_.trace, [&](WritableFile& file) { return file.Append(std::string_view(json)); }));
  console_.Note("timeline of steps 2 to 4: " + run_.trace);
  return OkStatus();
}

// Nothing is lost: the state before the bad step is saved first.
Status TrainLoop::EndWithError(const Status& error) {
  console_.EndProgress();
  if (error.code() == StatusCode::kInvalidData) RETURN_IF_ERROR(Save());
  return error.Prepend("step " + std::to_string(step_));
}

}  // namespace onnxtrain
