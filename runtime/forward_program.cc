// SPDX-License-Identifier: Apache-2.0
#include "runtime/forward_program.h"

#include <algorithm>

#include "graph/dim_binding.h"
#include "graph/nearest_name.h"
#include "graph/onnx_reader.h"
#include "graph/traps.h"

namespace onnxtrain {
namespace {

// The value of a declared dimension that neither feed nor number gives.
StatusOr<int64_t> DimOf(const ModelValue& input, size_t axis, const DimValues& known, int64_t local_batch) {
  const ModelDim& dim = (*input.dims)[axis];
  if (dim.value) return *dim.value;
  const std::optional<int64_t> bound = dim.symbol.empty() ? std::nullopt : EvaluateDim(dim.symbol, known);
  if (bound) return *bound;
  if (axis == 0) return local_batch;
  return UsageError("dimension " + std::to_string(axis) + " of input '" + input.name + "' (" + input.type +
                    ") is not bound: give data, or --dim " + (dim.symbol.empty() ? "NAME" : dim.symbol) + "=K");
}

StatusOr<TensorType> DeclaredType(const ModelValue& input, const DimValues& known, int64_t local_batch) {
  if (!input.dims) {
    return UsageError("input '" + input.name + "' declares no shape: give data for it");
  }
  TensorType type{input.dtype, {}};
  for (size_t axis = 0; axis < input.dims->size(); ++axis) {
    ASSIGN_OR_RETURN(const int64_t dim, DimOf(input, axis, known, local_batch));
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

// What --dim says, what feeds show, and then the batch for the first dimension of what is not fed.
DimValues KnownDims(const OnnxModel& model, const TrainingOptions& options, int64_t local_batch) {
  DimValues known = options.dims;
  for (const ModelValue& input : model.inputs()) {
    const auto feed = options.feeds.find(input.name);
    if (feed == options.feeds.end() || !input.dims) continue;
    const Shape shape = FedType(feed->second, local_batch, options).shape;
    for (size_t axis = 0; axis < std::min(shape.size(), input.dims->size()); ++axis) {
      const std::string& symbol = (*input.dims)[axis].symbol;
      if (!symbol.empty()) (void)SolveDim(symbol, shape[axis], known);  // what does not fit is reported when inputs are bound
    }
  }
  for (const ModelValue& input : model.inputs()) {
    if (options.feeds.count(input.name) != 0 || !input.dims || input.dims->empty()) continue;
    const ModelDim& batch = (*input.dims)[0];
    if (!batch.value && !batch.symbol.empty()) (void)SolveDim(batch.symbol, local_batch, known);
  }
  return known;
}

SpecializeOptions SpecializeFor(const TrainingOptions& options, std::map<std::string, TensorType> inputs,
                                const ForwardProgramOptions& build) {
  SpecializeOptions specialize;
  specialize.inputs = std::move(inputs);
  specialize.dims = options.dims;
  specialize.widen_to_double = options.dtype == DType::kDouble;
  specialize.outputs = build.outputs;
  return specialize;
}

struct Decision {
  TrainableSet set;
  std::vector<std::string> traps;
};

// The loss of a graph that holds the forward pass alone; all float outputs where there may be none.
StatusOr<std::vector<const Value*>> Losses(Program& scratch, const TrainingOptions& options,
                                           const ForwardProgramOptions& build) {
  const Status appended = AppendLoss(LossOf(options, build.local_batch, nullptr))->Run(scratch).status();
  const Graph& graph = *scratch.FindGraph("step");
  if (appended.ok()) return std::vector<const Value*>{graph.FindRole("loss")};
  const bool none = options.loss == "auto" && options.loss_on.empty() && appended.code() == StatusCode::kInvalidModel;
  if (!build.loss_optional || !none) return appended;
  std::vector<const Value*> outputs;
  for (const Value* output : graph.outputs()) {
    if (IsFloating(output->type().dtype)) outputs.push_back(output);
  }
  return outputs;
}

// The decision over every initializer, on a graph that holds all of them as states.
StatusOr<Decision> Decide(const OnnxModel& model, const TrainingOptions& options, const SpecializeOptions& base,
                          const ForwardProgramOptions& build) {
  SpecializeOptions all = base;
  all.is_state = [](const ModelInitializer& initializer) { return IsFloating(initializer.type.dtype); };
  ASSIGN_OR_RETURN(Graph graph, Specialize(model, all));
  Program scratch;
  scratch.AddGraph(std::move(graph));
  ASSIGN_OR_RETURN(const std::vector<const Value*> losses, Losses(scratch, options, build));
  const bool has_loss = scratch.FindGraph("step")->FindRole("loss") != nullptr;
  TrainableSetOptions set;
  set.trainable = options.trainable;
  set.freeze = options.freeze;
  set.allow_empty = build.allow_nothing_trainable;
  Decision decision;
  ASSIGN_OR_RETURN(decision.set, FindTrainableSet(*scratch.FindGraph("step"), losses, model, set));
  if (!has_loss) decision.set.notes.push_back("the model has no loss: every float output counts as one here");
  ASSIGN_OR_RETURN(decision.traps, FindTraps(model, has_loss ? std::span<const Value* const>(losses)
                                                             : std::span<const Value* const>()));
  return decision;
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

StateForm FormOf(const TrainableSet& set, const std::string& name, const ForwardProgramOptions& build) {
  const Verdict verdict = set.Find(name)->verdict;
  return verdict == Verdict::kConstant && build.states.count(name) != 0 ? FormOf(Verdict::kFrozen) : FormOf(verdict);
}

// The forward graph with its states in the table and their initial values.
Status AddForward(const OnnxModel& model, const TrainableSet& set, const SpecializeOptions& base,
                  const ForwardProgramOptions& build, Program& program) {
  SpecializeOptions specialize = base;
  specialize.is_state = [&](const ModelInitializer& initializer) {
    const TensorVerdict* verdict = set.Find(initializer.name);
    return verdict->verdict != Verdict::kConstant || build.states.count(initializer.name) != 0;
  };
  ASSIGN_OR_RETURN(Graph graph, Specialize(model, specialize));
  for (const Value* state : graph.states()) {
    const StateForm form = FormOf(set, state->name(), build);
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
  const DimValues known = KnownDims(model, options, local_batch);
  for (const ModelValue& input : model.inputs()) {
    const auto feed = options.feeds.find(input.name);
    if (feed != options.feeds.end()) {
      bound[input.name] = FedType(feed->second, local_batch, options);
      // The graph is read in its own types and widened as a whole.
      if (bound[input.name].dtype == DType::kDouble && options.dtype == DType::kDouble) bound[input.name].dtype = input.dtype;
    } else {
      ASSIGN_OR_RETURN(bound[input.name], DeclaredType(input, known, local_batch));
    }
  }
  return bound;
}

StatusOr<ForwardProgram> BuildForwardProgram(const OnnxModel& model, const TrainingOptions& options,
                                             const ForwardProgramOptions& build) {
  using InputTypes = std::map<std::string, TensorType>;
  ASSIGN_OR_RETURN(InputTypes inputs, BoundInputs(model, options, build.local_batch));
  SpecializeOptions base = SpecializeFor(options, std::move(inputs), build);
  ForwardProgram made;
  ASSIGN_OR_RETURN(Decision decision, Decide(model, options, base, build));
  AddTensors(model, decision.set, made.tensors);
  made.notes = std::move(decision.set.notes);
  made.traps = std::move(decision.traps);
  RETURN_IF_ERROR(AddForward(model, decision.set, base, build, made.program));
  return made;
}

}  // namespace onnxtrain
