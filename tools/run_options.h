// SPDX-License-Identifier: Apache-2.0
// The options that commands share, as they are written on the command line, and what they mean together.
#ifndef ONNXTRAIN_TOOLS_RUN_OPTIONS_H_
#define ONNXTRAIN_TOOLS_RUN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/training_options.h"
#include "tools/option_set.h"

namespace onnxtrain {

struct RunOptions {
  std::vector<std::string> model;  // the one positional argument
  TrainingOptions training;
  std::string init_weights;
  bool step_chosen = false;  // a loss or an optimizer was asked for

  // Data: see docs/training.md.
  std::vector<std::string> train;  // NAME=FILE[:MAP] or FILE.npz
  std::vector<std::string> val;
  std::vector<std::string> feed;    // NAME=FILE, FILE.npz or NAME=[[...]]
  std::vector<std::string> tokens;  // globs
  std::vector<std::string> val_tokens;
  int64_t seq_len = 0;
  std::string tokens_to;  // IDX[,TARGETS]
  int64_t target_shift = 1;

  // Length and order.
  std::optional<int64_t> epochs;
  std::optional<int64_t> max_steps;
  std::optional<int64_t> batch_size;
  std::optional<int64_t> global_batch_size;
  bool drop_last = false;
  bool no_shuffle = false;
  bool deterministic = false;  // every run is; the option is honoured by being true already

  // Numbers and machine, as written: values that change nothing in this build.
  std::string recompute = "none";

  // The run folder.
  std::string out;
  std::optional<int64_t> save_every;
  std::optional<int64_t> eval_every;
  int64_t keep = 0;  // 0: all
  int64_t log_every = 1;
  bool resume = false;
  bool overwrite = false;
  bool override_resume = false;
  bool nan_check = false;
  bool dump_passes = false;
  bool dry_run = false;
  std::string trace;

  bool json = false;
  bool quiet = false;
};

// Declares groups of options. A command takes those that apply to it.
void AddModelOptions(OptionSet& options, RunOptions& run);  // MODEL, loss, what trains, --dim
// The same for `grad`, whose losses include sum, mean and l2 of any value.
void AddGradientLossOptions(OptionSet& options, RunOptions& run);
void AddOptimizerOptions(OptionSet& options, RunOptions& run);  // optimizer, schedule, groups
void AddLengthOptions(OptionSet& options, RunOptions& run);     // epochs, steps, order
void AddBatchOptions(OptionSet& options, RunOptions& run);      // batch, ranks, seed, threads
void AddNumberOptions(OptionSet& options, RunOptions& run);     // precision, memory, device
void AddDataOptions(OptionSet& options, RunOptions& run);       // --train, --val, --tokens, --feed
void AddRunningOptions(OptionSet& options, RunOptions& run);    // the run folder
void AddOutputOptions(OptionSet& options, RunOptions& run);     // --json, --quiet
// All that a training run is made of but its run folder: what inspect, check, build, plan and eval share with train.
void AddTrainingOptions(OptionSet& options, RunOptions& run);

// What needs several options to be judged: an option that the chosen optimizer, schedule or loss does not use, batch
// against global batch, warm-up against length. Usage errors. Fills training.batch_size from batch_size or
// global_batch_size; a fixed batch of the export is applied later, when the model is known.
Status CheckTogether(const OptionSet& options, RunOptions& run);

// Defaults of the optimizer where the user gave none, for messages and config.json.
double DefaultLearningRate(const std::string& optimizer);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_RUN_OPTIONS_H_
