// SPDX-License-Identifier: Apache-2.0
#include "runtime/gradient_program.h"

#include <algorithm>

#include "passes/build_backward.h"
#include "runtime/forward_program.h"

namespace onnxtrain {
namespace {

void KeepOnce(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// The model's outputs, the value the loss is taken of, and the targets that the graph computes.
ForwardProgramOptions Forward(const OnnxModel& model, const TrainingOptions& options,
                              const std::vector<std::string>& with_respect_to) {
  ForwardProgramOptions forward;
  forward.local_batch = options.batch_size;
  forward.allow_nothing_trainable = !with_respect_to.empty();
  for (const ModelValue& output : model.outputs()) forward.outputs.push_back(output.name);
  if (!options.loss_on.empty()) KeepOnce(forward.outputs, options.loss_on);
  for (const std::string& name : with_respect_to) {
    const auto is_input = [&](const ModelValue& input) { return input.name == name; };
    if (model.FindInitializer(name) != nullptr) {
      forward.states.insert(name);
    } else if (std::none_of(model.inputs().begin(), model.inputs().end(), is_input)) {
      KeepOnce(forward.outputs, name);
    }
  }
  return forward;
}

}  // namespace

StatusOr<GradientProgram> BuildGradientProgram(const OnnxModel& model, const TrainingOptions& options,
                                               const std::vector<std::string>& with_respect_to) {
  ASSIGN_OR_RETURN(ForwardProgram forward, BuildForwardProgram(model, options, Forward(model, options, with_respect_to)));
  GradientProgram made;
  made.program = std::move(forward.program);
  made.notes = std::move(forward.notes);
  made.targets = with_respect_to;
  if (with_respect_to.empty()) {
    for (const TensorInfo& tensor : forward.tensors) {
      if (tensor.verdict == "trainable") made.targets.push_back(tensor.name);
    }
  }
  for (const ModelValue& output : model.outputs()) made.outputs.push_back(output.name);
  BackwardReport report;
  BuildBackwardOptions backward;
  backward.with_respect_to = made.targets;
  backward.weighted = false;
  backward.report = &report;
  PassPipeline pipeline;
  pipeline.Add(SetMode(ModeOf(options)));
  pipeline.Add(AppendLoss(LossOf(options, options.batch_size, &made.notes)));
  pipeline.Add(BuildBackward(backward));
  RETURN_IF_ERROR(pipeline.Run(made.program));
  made.decomposed = report.decomposed;
  return made;
}

}  // namespace onnxtrain
