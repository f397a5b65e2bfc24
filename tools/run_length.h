// SPDX-License-Identifier: Apache-2.0
// How many steps a run takes.
#ifndef ONNXTRAIN_TOOLS_RUN_LENGTH_H_
#define ONNXTRAIN_TOOLS_RUN_LENGTH_H_

#include <cstdint>

#include "runtime/data/sampler.h"
#include "tools/run_data.h"
#include "tools/run_options.h"

namespace onnxtrain {

// The earlier of --max-steps and --epochs; one epoch without either.
int64_t PlannedSteps(const RunOptions& run, int64_t steps_per_epoch);
// `whole_batches`: the export fixes the batch, so partial ones cannot be had.
SamplerOptions TrainSampler(const RunOptions& run, const Dataset& train, bool whole_batches);

// The planned number of steps, which schedules need: put into run.training.max_steps. Without training data
// --max-steps, or 0 where that is not given. Usage for a warm-up that is not below it, and for a schedule with an end
// and no length; InvalidData for data that gives no step.
StatusOr<int64_t> ResolveLength(RunOptions& run, const RunData& data);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_RUN_LENGTH_H_
