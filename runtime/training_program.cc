// SPDX-License-Identifier: Apache-2.0
#include "runtime/training_program.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/nearest_name.h"
#include "graph/onnx_reader.h"
#include "graph/trainable_set.h"
#include "passes/append_loss.h"
#include "passes/append_optimizer.h"
#include "passes/build_backward.h"
#include "passes/set_mode.h"

namespace onnxtrain {
namespace {

constexpr const char* kInputSpecKey = "pkg.torch.export.graph_signature.InputSpec.kind";

DType FedDType(const ModelValue& input, const TrainingOptions& options) {
  return options.dtype == DType::kDouble && IsFloating(input.dtype) ? DType::kDouble : input.dtype;
}

// The value of a declared dimension that neither feed nor number gives.
StatusOr<int64_t> DimOf(const ModelValue& input, size_t axis, const TrainingOptions& options, int64_t local_batch) {
  const ModelDim& dim = (*input.dims)[axis];
  if (dim.value) return *dim.value;
  const auto named = options.dims.find(dim.symbol);
  if (named != options.dims.end()) return named->second;
  if (axis == 0) return local_batch;
  return UsageError("dimension " + std::to_string(axis) + " of input '" + input.name + "' (" + input.type +
                    ") is not bound: give data, or --dim " + (dim.symbol.empty() ? "NAME" : dim.symbol) + "=K");
}

StatusOr<TensorType> DeclaredType(const ModelValue& input, const TrainingOptions& options, int64_t local_batch) {
  if (!input.dims) {
    return UsageError("input '" + input.name + "' declares no shape: give data for it");
  }
  TensorType type{FedDType(input, options), {}};
  for (size_t axis = 0; axis < input.dims->size(); ++axis) {
    ASSIGN_OR_RETURN(const int64_t dim, DimOf(input, axis, options, local_batch));
    type.shape.push_back(dim);
  }
  return type;
}

TensorType FedType(const FeedSpec& feed, int64_t local_batch, const TrainingOptions& options) {
  TensorType type{feed.dtype, feed.sample_shape};
  if (options.dtype == DType::kDouble && IsFloating(type.dtype)) type.dtype = DType::kDouble;
  if (feed.per_sample) type.shape.insert(type.shape.begin(), local_batch);
  return type;
}

std::vector<InitializerFacts> FactsOf(const OnnxModel& model) {
  std::vector<InitializerFacts> facts;
  for (const ModelInitializer& initializer : model.initializers()) {
    const auto label = initializer.metadata.find(kInputSpecKey);
    facts.push_back({initializer.name, initializer.type, initializer.type_text,
                     label == initializer.metadata.end() ? "" : label->second});
  }
  return facts;
}

AppendLossOptions LossOf(const TrainingOptions& options, int64_t local_batch, std::vector<std::string>* warnings) {
  AppendLossOptions loss;
  loss.kind = *LossKindFromName(options.loss);
  loss.output = options.loss_on;
  if (!options.labels.empty()) loss.labels = options.labels;
  loss.ignore_index = options.ignore_index;
  loss.label_smoothing = options.label_smoothing;
  const auto fed = options.feeds.find(loss.labels);
  if (fed != options.feeds.end()) loss.labels_type = FedType(fed->second, local_batch, options);
  loss.warnings = warnings;
  return loss;
}

SetModeOptions ModeOf(const TrainingOptions& options) {
  SetModeOptions mode;
  if (options.batch_norm == "train") mode.batch_norm = BatchNormMode::kTrain;
  if (options.batch_norm == "frozen") mode.batch_norm = BatchNormMode::kFrozen;
  if (options.dropout == "on") mode.dropout = DropoutMode::kOn;
  if (options.dropout == "off") mode.dropout = DropoutMode::kOff;
  mode.seed = static_cast<int64_t>(options.seed);
  return mode;
}

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

SpecializeOptions SpecializeFor(const TrainingOptions& options, std::map<std::string, TensorType> inputs) {
  SpecializeOptions specialize;
  specialize.inputs = std::move(inputs);
  specialize.dims = options.dims;
  specialize.widen_to_double = options.dtype == DType::kDouble;
  if (!options.loss_on.empty()) specialize.outputs = {options.loss_on};
  return specialize;
}

// The decision over every initializer, on a graph that holds all of them as states.
StatusOr<TrainableSet> DecideTrainable(const OnnxModel& model, const TrainingOptions& options,
                                       const SpecializeOptions& base, int64_t local_batch) {
  SpecializeOptions all = base;
  all.is_state = [](const ModelInitializer& initializer) { return IsFloating(initializer.type.dtype); };
  ASSIGN_OR_RETURN(Graph graph, Specialize(model, all));
  Program scratch;
  scratch.AddGraph(std::move(graph));
  RETURN_IF_ERROR(AppendLoss(LossOf(options, local_batch, nullptr))->Run(scratch).status());
  const Graph& with_loss = *scratch.FindGraph("step");
  const Value* loss = with_loss.FindRole("loss");
  TrainableSetOptions set;
  set.trainable = options.trainable;
  set.freeze = options.freeze;
  return FindTrainableSet(with_loss, {&loss, 1}, FactsOf(model),
                          [&](const std::string& name) { return model.Initializer(name); }, set);
}

struct StateForm {
  StateClass state_class;
  const char* role;
};

StateForm FormOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kTrainable: return {StateClass::kParameter, "parameter"};
    case Verdict::kBuffer: return {StateClass::kBuffer, "buffer"};
    default: return {StateClass::kFrozen, "frozen"};
  }
}

// The forward graph with its states in the table and their initial values.
Status AddForward(const OnnxModel& model, const TrainableSet& set, const SpecializeOptions& base, Program& program) {
  SpecializeOptions specialize = base;
  specialize.is_state = [&](const ModelInitializer& initializer) {
    const TensorVerdict* verdict = set.Find(initializer.name);
    return verdict != nullptr && verdict->verdict != Verdict::kConstant;
  };
  ASSIGN_OR_RETURN(Graph graph, Specialize(model, specialize));
  for (const Value* state : graph.states()) {
    const StateForm form = FormOf(set.Find(state->name())->verdict);
    StateEntry entry{state->name(), state->type(), form.state_class, form.role, state->name()};
    ASSIGN_OR_RETURN(Tensor initial, model.Initializer(state->name()));
    program.initial[CanonicalName(entry)] = initial.CastTo(state->type().dtype);
    program.AddState(std::move(entry));
  }
  program.AddGraph(std::move(graph));
  return OkStatus();
}

void AddTensors(const OnnxModel& model, const TrainableSet& set, std::vector<TensorInfo>& tensors) {
  for (const ModelInitializer& initializer : model.initializers()) {
    const TensorVerdict* verdict = set.Find(initializer.name);
    tensors.push_back({initializer.name, initializer.type, std::string(NameOf(verdict->verdict)), verdict->reason});
  }
}

}  // namespace

StatusOr<std::map<std::string, TensorType>> BoundInputs(const OnnxModel& model, const TrainingOptions& options,
                                                        int64_t local_batch) {
  std::map<std::string, TensorType> bound;
  std::vector<std::string> names;
  for (const ModelValue& input : model.inputs()) names.push_back(input.name);
  for (const auto& [name, feed] : options.feeds) {
    if (name != options.labels && std::find(names.begin(), names.end(), name) == names.end()) {
      return UsageError("the model has no input '" + name + "'" + DidYouMean(name, names));
    }
  }
  for (const ModelValue& input : model.inputs()) {
    const auto feed = options.feeds.find(input.name);
    if (feed != options.feeds.end()) {
      bound[input.name] = FedType(feed->second, local_batch, options);
    } else {
      ASSIGN_OR_RETURN(bound[input.name], DeclaredType(input, options, local_batch));
    }
  }
  return bound;
}

StatusOr<TrainingProgram> BuildTrainingProgram(const OnnxModel& model, const TrainingOptions& options,
                                               const TrainingProgramOptions& build) {
  using InputTypes = std::map<std::string, TensorType>;
  ASSIGN_OR_RETURN(InputTypes inputs, BoundInputs(model, options, build.local_batch));
  const SpecializeOptions base = SpecializeFor(options, std::move(inputs));
  ASSIGN_OR_RETURN(const TrainableSet set, DecideTrainable(model, options, base, build.local_batch));
  TrainingProgram made;
  AddTensors(model, set, made.tensors);
  made.notes = set.notes;
  RETURN_IF_ERROR(AddForward(model, set, base, made.program));
  made.program.AddGraph(made.program.FindGraph("step")->Clone("eval"));

  PassPipeline pipeline;
  BackwardReport report;
  pipeline.Add(SetMode(SetModeOptions::Inference("eval")));
  AppendLossOptions eval_loss = LossOf(options, build.local_batch, nullptr);
  eval_loss.graph = "eval";
  eval_loss.evaluation = true;
  pipeline.Add(AppendLoss(eval_loss));
  if (build.backward) {
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
