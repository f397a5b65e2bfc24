// SPDX-License-Identifier: Apache-2.0
#include "runtime/training_program.h"

#include <algorithm>

#include "passes/append_loss.h"
#include "passes/set_mode.h"
#include "passes/standard_pipeline.h"
#include "runtime/forward_program.h"

namespace onnxtrain {
namespace {

double LearningRateOf(const TrainingOptions& options) {
  if (options.lr) return *options.lr;
  return options.optimizer == "adagrad" ? 1e-2 : options.optimizer == "lion" ? 1e-4 : 1e-3;
}

int64_t DecayStepsOf(const TrainingOptions& options) {
  if (options.schedule != "wsd") return 0;
  return options.decay_steps.value_or(std::max<int64_t>(1, options.max_steps / 10));
}

AppendOptimizerOptions OptimizerOf(const TrainingOptions& options) {
  AppendOptimizerOptions made;
  made.method = *OptimizerMethodFromName(options.optimizer);
  made.schedule = {options.schedule, LearningRateOf(options), options.min_lr, options.warmup_steps,
                   options.max_steps, options.step_size, options.gamma,
                   DecayStepsOf(options)};
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

BucketGradientsOptions BucketsOf(const TrainingOptions& options, const Layout* layout) {
  BucketGradientsOptions buckets;
  if (options.bucket_mb) buckets.bucket_bytes = *options.bucket_mb * 1048576.0;
  buckets.cost = options.machine;
  if (options.zero == 0) {  // an all-reduce is a reduce-scatter and an all-gather
    buckets.cost.link_gbps /= 2;
    buckets.cost.link_latency_us *= 2;
  }
  if (layout != nullptr && !layout->empty()) buckets.layout = *layout;
  return buckets;
}

PipelineOptions PipelineOf(const TrainingOptions& options, const TrainingProgramOptions& build) {
  PipelineOptions pipeline;
  pipeline.mode = ModeOf(options);
  pipeline.loss = LossOf(options, build.local_batch, nullptr);
  pipeline.optimizer = OptimizerOf(options);
  pipeline.buckets = BucketsOf(options, build.layout);
  pipeline.ranks = options.ranks;
  pipeline.zero = options.zero;
  pipeline.accumulation = options.accumulation;
  if (options.dtype == DType::kBfloat16) pipeline.precision.compute = DType::kBfloat16;
  pipeline.buckets.reduce = options.reduce_dtype;
  return pipeline;
}

// The graph `step` becomes `eval`; nothing else is made.
PassPipeline EvaluationPipeline(const TrainingOptions& options, int64_t local_batch, TrainingProgram& made) {
  made.program.AddGraph(made.program.FindGraph("step")->Clone("eval"));
  made.program.EraseGraph("step");
  AppendLossOptions loss = LossOf(options, local_batch, &made.notes);
  loss.graph = "eval";
  loss.evaluation = true;
  PassPipeline pipeline;
  pipeline.Add(SetMode(SetModeOptions::Inference("eval")));
  pipeline.Add(AppendLoss(loss));
  return pipeline;
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
  BackwardReport report;
  if (options.evaluation_only) {
    RETURN_IF_ERROR(EvaluationPipeline(options, build.local_batch, made).Run(made.program, build.observer));
    return made;
  }
  PipelineOptions pipeline = PipelineOf(options, build);
  pipeline.loss.warnings = &made.notes;
  pipeline.report = &report;
  ASSIGN_OR_RETURN(const PassPipeline passes, StandardPipeline(pipeline));
  RETURN_IF_ERROR(passes.Run(made.program, build.observer));
  made.decomposed = report.decomposed;
  return made;
}

}  // namespace onnxtrain
