// SPDX-License-Identifier: Apache-2.0
// config.json: every effective value of a run under its option's name, in a form that --config and --resume read back.
#ifndef ONNXTRAIN_TOOLS_RUN_CONFIG_H_
#define ONNXTRAIN_TOOLS_RUN_CONFIG_H_

#include <optional>
#include <string>

#include "tools/option_set.h"
#include "tools/run_options.h"

namespace onnxtrain {

// `steps` is the planned number of steps.
std::string EffectiveConfig(const RunOptions& run, int64_t steps);

// What a run folder says of the run that a --resume goes on with; empty for a new folder.
struct StoredRun {
  std::optional<int64_t> global_batch;
  std::optional<int64_t> planned_steps;
  int ranks = 0;
  std::string schedule;
};

// Puts the stored configuration under what the command line gives: the global batch is kept. InvalidData for a file
// that is no configuration.
StatusOr<StoredRun> ApplyStoredConfig(const std::string& stored, const std::string& file, OptionSet& options);

// Usage, naming the way out, for what a resumed run may change with --override only: the global batch;
Status CheckGlobalBatch(const StoredRun& stored, const RunOptions& run);
// the planned steps of a schedule that depends on them, and the ranks where BatchNormalization has local statistics.
Status CheckResumed(const StoredRun& stored, const RunOptions& run, int64_t planned, bool batch_statistics);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_RUN_CONFIG_H_
