// SPDX-License-Identifier: Apache-2.0
// The forward graph of a model for one batch shape, with what trains decided: where training and `grad` begin.
#ifndef ONNXTRAIN_RUNTIME_FORWARD_PROGRAM_H_
#define ONNXTRAIN_RUNTIME_FORWARD_PROGRAM_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/onnx_model.h"
#include "graph/program.h"
#include "graph/trainable_set.h"
#include "passes/append_loss.h"
#include "passes/set_mode.h"
#include "runtime/training_options.h"
#include "runtime/training_session.h"

namespace onnxtrain {

struct ForwardProgramOptions {
  int64_t local_batch = 1;            // samples of one rank and micro-batch
  std::vector<std::string> outputs;   // values to keep, as SpecializeOptions::outputs
  std::set<std::string> states;       // initializers that are states whatever their verdict (frozen then)
  bool allow_nothing_trainable = false;
  bool loss_optional = false;  // without a loss, what trains is judged by all float outputs, and a note says so
};

struct ForwardProgram {
  Program program;                  // graph "step": the forward pass alone; state table with initial values
  std::vector<TensorInfo> tensors;  // every initializer of the file with its verdict
  std::vector<std::string> notes;
  std::vector<std::string> traps;   // what an exporter did that a user should know (graph/traps.h)
};

StatusOr<ForwardProgram> BuildForwardProgram(const OnnxModel& model, const TrainingOptions& options,
                                             const ForwardProgramOptions& build);

// The types of the graph inputs that feeds and batch bind: name -> concrete type. Usage for an unbound dimension.
StatusOr<std::map<std::string, TensorType>> BoundInputs(const OnnxModel& model, const TrainingOptions& options,
                                                        int64_t local_batch);

// The options of the passes that options of a run mean.
AppendLossOptions LossOf(const TrainingOptions& options, int64_t local_batch, std::vector<std::string>* warnings);
SetModeOptions ModeOf(const TrainingOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_FORWARD_PROGRAM_H_
