// SPDX-License-Identifier: Apache-2.0
// The search for the first value that is not finite: each micro-batch of each rank again, on one rank and node by node.
#include <algorithm>
#include <cstring>

#include "runtime/cpu/cpu_device.h"
#include "runtime/local_session.h"
#include "runtime/non_finite_search.h"

namespace onnxtrain {

// The same options for one rank and one micro-batch: the whole state in canonical form, no collectives.
TrainingOptions LocalSession::SingleRankOptions(int64_t local_batch) const {
  TrainingOptions single = options_;
  single.ranks = 1;
  single.zero = 0;
  single.accumulation = 1;
  single.bucket_mb.reset();
  single.batch_size = local_batch;
  return single;
}

StatusOr<const TrainingProgram*> LocalSession::SingleRankProgram(int64_t local_batch) {
  const auto found = single_rank_.find(local_batch);
  if (found != single_rank_.end()) return &found->second;
  TrainingProgramOptions build;
  build.local_batch = local_batch;
  ASSIGN_OR_RETURN(TrainingProgram made, BuildTrainingProgram(model_, SingleRankOptions(local_batch), build));
  return &single_rank_.emplace(local_batch, std::move(made)).first->second;
}

Status LocalSession::ExplainNonFinite(const Feeds& feeds, int64_t samples) {
  std::map<std::string, Tensor> states;
  for (const std::string& name : states_->names()) {
    ASSIGN_OR_RETURN(states[name], states_->Read(name));
  }
  for (int rank = 0; rank < options_.ranks; ++rank) {
    for (int micro = 0; micro < options_.accumulation; ++micro) {
      const Slice slice = MicroSlice(RankSlice(samples, rank), micro);
      if (slice.count == 0) continue;
      const Status status = ExplainSlice(feeds, slice, rank, micro, states);
      if (!status.ok()) return options_.ranks == 1 ? status : status.Prepend("[rank " + std::to_string(rank) + "]");
    }
  }
  return OkStatus();
}

Status LocalSession::ExplainSlice(const Feeds& feeds, const Slice& slice, int rank, int micro,
                                  const std::map<std::string, Tensor>& states) {
  ASSIGN_OR_RETURN(const TrainingProgram* single, SingleRankProgram(slice.count));
  const Graph& graph = *single->program.FindGraph("step");
  std::map<std::string, Tensor> inputs;
  for (const Value* input : graph.inputs()) {
    const auto spec = options_.feeds.find(input->name());
    const bool per_sample = spec == options_.feeds.end() || spec->second.per_sample;
    Tensor tensor(input->type());
    const size_t offset =
        per_sample ? tensor.bytes() / static_cast<size_t>(slice.count) * static_cast<size_t>(slice.begin) : 0;
    const auto feed = feeds.find(input->name());
    if (feed == feeds.end()) return UsageError("input '" + input->name() + "' is not fed");
    if (tensor.bytes() != 0)
      std::memcpy(tensor.data(), static_cast<const std::byte*>(feed->second) + offset, tensor.bytes());
    inputs[input->name()] = std::move(tensor);
  }
  NodeRunnerOptions runner;
  runner.seed = options_.seed;
  runner.rank = rank;  // random draws are those of the step
  runner.accumulation = options_.accumulation;
  runner.micro_batch = micro;
  const CpuDevice host;  // whatever the session's backend: node by node is a matter of the host
  return SearchNonFinite(single->program, host.kernels(), runner, states, inputs);
}

}  // namespace onnxtrain
