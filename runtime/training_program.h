// SPDX-License-Identifier: Apache-2.0
// From a model file and options to the Program of a training run, for one batch shape.
#ifndef ONNXTRAIN_RUNTIME_TRAINING_PROGRAM_H_
#define ONNXTRAIN_RUNTIME_TRAINING_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/onnx_model.h"
#include "graph/program.h"
#include "passes/pass.h"
#include "runtime/training_options.h"
#include "runtime/training_session.h"

namespace onnxtrain {

struct TrainingProgram {
  Program program;
  std::vector<TensorInfo> tensors;      // every initializer of the file with its verdict
  std::vector<std::string> notes;       // what was found and done that a user should know
  std::vector<std::string> decomposed;  // nodes differentiated through their ONNX function body
};

struct TrainingProgramOptions {
  int64_t local_batch = 1;        // samples of one rank and micro-batch
  const Layout* layout = nullptr; // the Layout of the session; null: it is made here
  PassPipeline::Observer observer = nullptr;  // sees the program after each pass of the training pipeline
};

// Reads the model for the batch shape, decides what trains, and runs the pipeline. Fails as the command line pins it:
// InvalidModel for what is not trainable, Usage for options that cannot be honoured.
StatusOr<TrainingProgram> BuildTrainingProgram(const OnnxModel& model, const TrainingOptions& options,
                                               const TrainingProgramOptions& build);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_TRAINING_PROGRAM_H_
