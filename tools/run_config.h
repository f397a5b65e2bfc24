// SPDX-License-Identifier: Apache-2.0
// config.json: every effective value of a run under its option's name, in a form that --config and --resume read back.
#ifndef ONNXTRAIN_TOOLS_RUN_CONFIG_H_
#define ONNXTRAIN_TOOLS_RUN_CONFIG_H_

#include <string>

#include "tools/option_set.h"
#include "tools/run_options.h"

namespace onnxtrain {

// `steps` is the planned number of steps.
std::string EffectiveConfig(const RunOptions& run, int64_t steps);

// The stored configuration under what the command line gives: the global batch is kept, and Usage names what would change it
// without --override.
Status ApplyStoredConfig(const std::string& stored, const std::string& file, OptionSet& options, RunOptions& run);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_RUN_CONFIG_H_
