// SPDX-License-Identifier: Apache-2.0
// Forward and backward pass of one batch without optimizer: what `grad` runs node by node.
#ifndef ONNXTRAIN_RUNTIME_GRADIENT_PROGRAM_H_
#define ONNXTRAIN_RUNTIME_GRADIENT_PROGRAM_H_

#include <string>
#include <vector>

#include "graph/onnx_model.h"
#include "graph/program.h"
#include "runtime/training_options.h"

namespace onnxtrain {

struct GradientProgram {
  Program program;                   // graph "step" with role loss and roles gradient/<target>
  std::vector<std::string> targets;  // trainable initializers, or `with_respect_to`
  std::vector<std::string> outputs;  // the model's own outputs
  std::vector<std::string> notes;
  std::vector<std::string> decomposed;
};

// `with_respect_to`: initializers, inputs or intermediate values; empty: what would train. The loss is the mean over
// the batch; options.loss may also be sum, mean or l2 of options.loss_on.
StatusOr<GradientProgram> BuildGradientProgram(const OnnxModel& model, const TrainingOptions& options,
                                               const std::vector<std::string>& with_respect_to);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_GRADIENT_PROGRAM_H_
