// SPDX-License-Identifier: Apache-2.0
// What a LocalSession runs: steps and evaluations, cut over ranks and micro-batches.
#include <algorithm>

#include "runtime/local_session.h"
#include "runtime/node_runner.h"

namespace onnxtrain {
namespace {

double Scalar(const Tensor& tensor) { return tensor.DoubleAt(0); }

// The fetched tensor of an output; null when the graph has none of the name.
const Tensor* FindFetched(const Graph& graph, const std::vector<Tensor>& tensors, std::string_view name) {
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.outputs()[i]->name() == name) return &tensors[i];
  }
  return nullptr;
}

Status ResolveFeeds(const Graph& graph, const Feeds& feeds, const std::vector<size_t>& offsets,
                    std::vector<const std::byte*>& pointers) {
  for (size_t i = 0; i < pointers.size(); ++i) {
    const Value* input = graph.inputs()[i];
    const auto feed = feeds.find(input->name());
    if (feed == feeds.end() || feed->second == nullptr) {
      return UsageError("input '" + input->name() + "' (" + ToString(input->type()) + ") is not fed");
    }
    pointers[i] = static_cast<const std::byte*>(feed->second) + offsets[i];
  }
  return OkStatus();
}

}  // namespace

StatusOr<LocalSession::Submissions*> LocalSession::StepFor(int64_t samples) {
  const auto found = steps_.find(samples);
  if (found != steps_.end()) return &found->second;
  Submissions made;
  for (int micro = 0; micro < options_.accumulation; ++micro) {
    for (int rank = 0; rank < options_.ranks; ++rank) {
      const Slice slice = MicroSlice(RankSlice(samples, rank), micro);
      ASSIGN_OR_RETURN(Variant * variant, VariantFor(slice.count == 0 ? options_.batch_size : slice.count));
      const std::string name = (slice.count == 0 ? "zero_" : "") + GraphName(micro);
      ASSIGN_OR_RETURN(Submission submission, Prepare(*variant, name, rank, micro, slice));
      made.push_back(std::move(submission));
    }
  }
  return &steps_.emplace(samples, std::move(made)).first->second;
}

StatusOr<LocalSession::Submissions*> LocalSession::EvaluationFor(int64_t samples) {
  const auto found = evaluations_.find(samples);
  if (found != evaluations_.end()) return &found->second;
  Submissions made;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const Slice slice = RankSlice(samples, rank);
    if (slice.count == 0) break;
    ASSIGN_OR_RETURN(Variant * variant, VariantFor(slice.count));
    ASSIGN_OR_RETURN(Submission submission, Prepare(*variant, "eval", rank, 0, slice));
    made.push_back(std::move(submission));
  }
  return &evaluations_.emplace(samples, std::move(made)).first->second;
}

Status LocalSession::RunAll(Submissions& submissions, const Feeds& feeds) {
  for (Submission& submission : submissions) {
    RETURN_IF_ERROR(ResolveFeeds(*submission.planned->graph, feeds, submission.offsets, submission.feeds));
  }
  for (Submission& submission : submissions) {
    submission.times = tracing_ ? std::make_unique<StepTimes>(submission.planned->plan, trace_origin_) : nullptr;
  }
  SubmitAll(submissions);
  RETURN_IF_ERROR(team_->Synchronize());
  for (const Submission& submission : submissions) {  // fetches that are staged
    Executor& executor = team_->executor(submission.planned->index, submission.rank);
    for (int back = 0; back < Executor::kDepth; ++back) executor.WaitFor(back);
  }
  if (tracing_) CollectTrace(submissions);
  for (const Submission& submission : submissions) {
    const Status fault = CheckFaults(submission);
    if (fault.ok()) continue;
    // The backward pass may have seen the same bad index after the word was read.
    RETURN_IF_ERROR(team_->ClearStatusWords());
    return fault;
  }
  return OkStatus();
}

void LocalSession::SubmitAll(Submissions& submissions) {
  const auto submit = [&](Submission& submission) {
    team_->executor(submission.planned->index, submission.rank)
        .Submit({submission.micro_batch}, submission.feeds, submission.fetches, submission.times.get());
  };
  if (threads_ == nullptr) {
    for (Submission& submission : submissions) submit(submission);
    return;
  }
  threads_->Run([&](int rank) {
    for (Submission& submission : submissions) {
      if (submission.rank == rank) submit(submission);
    }
  });
}

Status LocalSession::CheckFaults(const Submission& submission) const {
  const Graph& graph = *submission.planned->graph;
  const Tensor* status = FindFetched(graph, submission.fetched, "status");
  if (status == nullptr || status->IntAt(0) == 0) return OkStatus();
  const auto fed = [&](const Value* input) -> const std::byte* {
    const auto found = std::find(graph.inputs().begin(), graph.inputs().end(), input);
    return found == graph.inputs().end() ? nullptr
                                         : submission.feeds[static_cast<size_t>(found - graph.inputs().begin())];
  };
  const Status fault = DescribeFault(static_cast<uint64_t>(status->IntAt(0)), graph, fed);
  return options_.ranks == 1 ? fault : fault.Prepend("[rank " + std::to_string(submission.rank) + "]");
}

StatusOr<StepResult> LocalSession::Step(const Feeds& feeds, int64_t samples) {
  if (options_.evaluation_only) return UsageError("the session was made for evaluation only");
  if (samples < 1 || samples > options_.global_batch()) {
    return UsageError("a step takes 1 to " + std::to_string(options_.global_batch()) + " samples, found " +
                      std::to_string(samples));
  }
  ASSIGN_OR_RETURN(Submissions * submissions, StepFor(samples));
  replicas_stale_ = true;
  RETURN_IF_ERROR(RunAll(*submissions, feeds));
  // Rank 0's part of the last micro-batch holds what all ranks agree on.
  const Submission& last = (*submissions)[submissions->size() - static_cast<size_t>(options_.ranks)];
  const Graph& graph = *last.planned->graph;
  StepResult result;
  result.step = step_;
  result.loss = Scalar(*FindFetched(graph, last.fetched, "loss"));
  result.grad_norm = Scalar(*FindFetched(graph, last.fetched, "grad_norm"));
  result.learning_rate = Scalar(*FindFetched(graph, last.fetched, "learning_rate"));
  result.applied = FindFetched(graph, last.fetched, "applied")->IntAt(0) != 0;
  if (result.applied) ++step_;
  return result;
}

Status LocalSession::Gather() {
  if (!replicas_stale_) return OkStatus();
  Variant& full = *variants_.at(options_.batch_size);
  if (full.built.program.FindGraph("gather") != nullptr) {
    if (gather_.empty()) {
      for (int rank = 0; rank < options_.ranks; ++rank) {
        ASSIGN_OR_RETURN(Submission submission, Prepare(full, "gather", rank, 0, {}));
        gather_.push_back(std::move(submission));
      }
    }
    RETURN_IF_ERROR(RunAll(gather_, {}));
  }
  RETURN_IF_ERROR(ShareBuffers());
  replicas_stale_ = false;
  return OkStatus();
}

Status LocalSession::ShareBuffers() {
  if (options_.ranks == 1) return OkStatus();
  for (const std::string& name : states_->names()) {
    if (!name.starts_with("buffer/")) continue;
    ASSIGN_OR_RETURN(const Tensor of_rank_0, states_->Read(name));
    RETURN_IF_ERROR(states_->Write(name, of_rank_0));
  }
  return OkStatus();
}

StatusOr<EvalResult> LocalSession::Evaluate(const Feeds& feeds, int64_t samples) {
  const int64_t most = options_.batch_size * options_.ranks;
  if (samples < 1 || samples > most) {
    return UsageError("an evaluation takes 1 to " + std::to_string(most) + " samples, found " +
                      std::to_string(samples));
  }
  RETURN_IF_ERROR(Gather());
  ASSIGN_OR_RETURN(Submissions * submissions, EvaluationFor(samples));
  RETURN_IF_ERROR(RunAll(*submissions, feeds));
  EvalResult result;
  for (const Submission& submission : *submissions) {
    const Graph& graph = *submission.planned->graph;
    result.loss_sum += Scalar(*FindFetched(graph, submission.fetched, "loss_sum"));
    result.weight += Scalar(*FindFetched(graph, submission.fetched, "loss_weight"));
    const Tensor* counted = FindFetched(graph, submission.fetched, "counted");
    if (counted == nullptr) continue;
    result.counted += counted->IntAt(0);
    result.correct += FindFetched(graph, submission.fetched, "correct")->IntAt(0);
  }
  result.samples = samples;
  return result;
}

}  // namespace onnxtrain
