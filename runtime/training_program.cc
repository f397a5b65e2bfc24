// SPDX-License-Identifier: Apache-2.0
#include "runtime/training_program.h"

#include <algorithm>

#include "passes/append_loss.h"
#include "passes/append_optimizer.h"
#include "passes/build_backward.h"
#include "passes/set_mode.h"
#include "runtime/forward_program.h"

namespace onnxtrain {
namespace {

double LearningRateOf(const TrainingOptions& options) {
  if (options.lr) return *options.lr;
  return options.optimizer == "adagrad" ? 1e-2 : options.optimizer == "lion" ? 1e-4 : 1e-3;
}

AppendOptimizerOptions OptimizerOf(const TrainingOptions& options) {
  AppendOptimizerOptions made;
  made.method = *OptimizerMethodFromName(options.optimizer);
  made.schedule = {options.schedule, LearningRateOf(options), options.min_lr, options.warmup_steps,
                   options.max_steps, options.step_size, options.gamma,
                   options.decay_steps.value_or(std::max<int64_t>(1, options.max_steps / 10))};
  if (options.optimizer == "sgd") made.momentum = options.momentum;
  made.nesterov = options.nesterov;
  made.beta1 = options.beta1;
  made.beta2 = options.beta2;
  made.epsilon = options.eps;
  made.weight_decay = options.weight_decay;
  made.no_decay = options.no_decay;
  for (const ParameterGroup& group : options.groups) made.groups.push_back({group.glob, group.lr, group.weight_decay});
  made.clip = options.clip_grad;
  made.gradient_multiplier = options.reduce_sum ? options.ranks : 1;
  return made;
}

}  // namespace

StatusOr<TrainingProgram> BuildTrainingProgram(const OnnxModel& model, const TrainingOptions& options,
                                               const TrainingProgramOptions& build) {
  ForwardProgramOptions forward_options;
  forward_options.local_batch = build.local_batch;
  forward_options.allow_nothing_trainable = options.evaluation_only;
  if (!options.loss_on.empty()) forward_options.outputs = {options.loss_on};
  ASSIGN_OR_RETURN(ForwardProgram forward, BuildForwardProgram(model, options, forward_options));
  TrainingProgram made;
  made.program = std::move(forward.program);
  made.tensors = std::move(forward.tensors);
  made.notes = std::move(forward.notes);
  made.program.AddGraph(made.program.FindGraph("step")->Clone("eval"));

  PassPipeline pipeline;
  BackwardReport report;
  pipeline.Add(SetMode(SetModeOptions::Inference("eval")));
  AppendLossOptions eval_loss = LossOf(options, build.local_batch, nullptr);
  eval_loss.graph = "eval";
  eval_loss.evaluation = true;
  pipeline.Add(AppendLoss(eval_loss));
  if (!options.evaluation_only) {
    pipeline.Add(SetMode(ModeOf(options)));
    pipeline.Add(AppendLoss(LossOf(options, build.local_batch, &made.notes)));
    BuildBackwardOptions backward;
    backward.report = &report;
    pipeline.Add(BuildBackward(backward));
    pipeline.Add(AppendOptimizer(OptimizerOf(options)));
  }
  RETURN_IF_ERROR(pipeline.Run(made.program, build.observer));
  made.decomposed = report.decomposed;
  return made;
}

}  // namespace onnxtrain
