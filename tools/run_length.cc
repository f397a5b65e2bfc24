// SPDX-License-Identifier: Apache-2.0
#include "tools/run_length.h"

#include <algorithm>

namespace onnxtrain {

int64_t PlannedSteps(const RunOptions& run, int64_t steps_per_epoch) {
  if (!run.epochs && !run.max_steps) return steps_per_epoch;
  const int64_t by_epochs = run.epochs ? *run.epochs * steps_per_epoch : INT64_MAX;
  return std::min(by_epochs, run.max_steps.value_or(INT64_MAX));
}

SamplerOptions TrainSampler(const RunOptions& run, const Dataset& train, bool whole_batches) {
  SamplerOptions sampler;
  sampler.samples = train.samples();
  sampler.global_batch = run.training.global_batch();
  sampler.shuffle = !run.no_shuffle;
  sampler.seed = run.training.seed;
  sampler.drop_last = run.drop_last || whole_batches;
  return sampler;
}

StatusOr<int64_t> ResolveLength(RunOptions& run, const RunData& data) {
  TrainingOptions& t = run.training;
  const bool bounded = t.schedule == "linear" || t.schedule == "cosine" || t.schedule == "wsd";
  int64_t planned = run.max_steps.value_or(0);
  if (data.train) {
    ASSIGN_OR_RETURN(const Sampler sampler,
                     Sampler::Create(TrainSampler(run, *data.train, data.fixed_batch.has_value())));
    planned = PlannedSteps(run, sampler.batches_per_epoch());
  } else if (bounded && !run.max_steps) {
    return UsageError("--schedule " + t.schedule + " needs the number of steps: give --max-steps, or training data");
  }
  t.max_steps = planned;
  if (t.warmup_steps > 0 && t.warmup_steps >= planned && (planned > 0 || bounded)) {
    return UsageError("--warmup-steps " + std::to_string(t.warmup_steps) + " must be below the " +
                      std::to_string(planned) + " steps of the run");
  }
  if (bounded && planned == 0) t.schedule = "constant";  // nothing will be run
  return planned;
}

}  // namespace onnxtrain
