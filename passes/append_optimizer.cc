// SPDX-License-Identifier: Apache-2.0
#include "passes/append_optimizer.h"

#include <algorithm>
#include <array>

#include "graph/graph_builder.h"
#include "passes/parameter_groups.h"
#include "passes/step_structure.h"

namespace onnxtrain {
namespace {

struct NamedMethod {
  OptimizerMethod method;
  std::string_view name;
  std::string_view op;
};
constexpr std::array<NamedMethod, 5> kMethods = {{{OptimizerMethod::kSgd, "sgd", "onnxtrain.SGD"},
                                                  {OptimizerMethod::kAdam, "adam", "onnxtrain.Adam"},
                                                  {OptimizerMethod::kAdamW, "adamw", "onnxtrain.AdamW"},
                                                  {OptimizerMethod::kAdagrad, "adagrad", "onnxtrain.Adagrad"},
                                                  {OptimizerMethod::kLion, "lion", "onnxtrain.Lion"}}};

const NamedMethod& EntryOf(OptimizerMethod method) {
  return *std::find_if(kMethods.begin(), kMethods.end(), [&](const NamedMethod& e) { return e.method == method; });
}

float ToFloat(double value) { return static_cast<float>(value); }

bool IsAdam(OptimizerMethod method) { return method == OptimizerMethod::kAdam || method == OptimizerMethod::kAdamW; }

Status CheckMethod(const AppendOptimizerOptions& options) {
  const std::string method(NameOf(options.method));
  const bool sgd = options.method == OptimizerMethod::kSgd;
  const bool betas = IsAdam(options.method) || options.method == OptimizerMethod::kLion;
  const bool epsilon = IsAdam(options.method) || options.method == OptimizerMethod::kAdagrad;
  auto unused = [&](const char* name) {
    return UsageError(std::string(name) + " has no meaning for --optimizer " + method);
  };
  if (!sgd && options.momentum.value_or(0) != 0) return unused("--momentum");
  if (!sgd && options.dampening.value_or(0) != 0) return unused("dampening");
  if (!sgd && options.nesterov) return unused("--nesterov");
  if (!betas && (options.beta1.has_value() || options.beta2.has_value())) return unused("--betas");
  if (!epsilon && options.epsilon.has_value()) return unused("--eps");
  if (options.nesterov && (options.momentum.value_or(0) <= 0 || options.dampening.value_or(0) != 0)) {
    return UsageError("--nesterov needs --momentum above 0 and no dampening");
  }
  return OkStatus();
}

Status CheckSchedule(const LearningRateSchedule& schedule) {
  const std::string& kind = schedule.kind;
  const bool planned = kind == "linear" || kind == "cosine" || kind == "wsd";
  if (!planned && kind != "constant" && kind != "step") {
    return UsageError("--schedule must be constant, linear, cosine, step or wsd, found '" + kind + "'");
  }
  if (!planned && schedule.min_lr != 0) return UsageError("--min-lr has no meaning for --schedule " + kind);
  if (kind != "step" && schedule.step_size != 0) return UsageError("--step-size goes with --schedule step only");
  if (kind != "wsd" && schedule.decay_steps != 0) return UsageError("--decay-steps goes with --schedule wsd only");
  if (planned && schedule.warmup_steps >= schedule.max_steps) {
    return UsageError("--schedule " + kind + " needs more planned steps than --warmup-steps " +
                      std::to_string(schedule.warmup_steps) + ", found " + std::to_string(schedule.max_steps));
  }
  if (kind == "step" && schedule.step_size <= 0) return UsageError("--schedule step needs --step-size above 0");
  return OkStatus();
}

Attributes RateAttributes(const LearningRateSchedule& schedule) {
  Attributes attributes{{"schedule", schedule.kind}, {"lr", ToFloat(schedule.lr)}};
  if (schedule.warmup_steps > 0) attributes.Set("warmup_steps", schedule.warmup_steps);
  if (schedule.kind == "step") {
    attributes.Set("step_size", schedule.step_size);
    attributes.Set("gamma", ToFloat(schedule.gamma));
  } else if (schedule.kind != "constant") {
    attributes.Set("max_steps", schedule.max_steps);
    attributes.Set("min_lr", ToFloat(schedule.min_lr));
  }
  if (schedule.kind == "wsd") {
    const int64_t tenth = std::max<int64_t>(1, schedule.max_steps / 10);
    attributes.Set("decay_steps", schedule.decay_steps > 0 ? schedule.decay_steps : tenth);
  }
  return attributes;
}

// Attributes that all parameters share.
Attributes MethodAttributes(const AppendOptimizerOptions& options) {
  Attributes attributes;
  if (IsAdam(options.method) || options.method == OptimizerMethod::kLion) {
    const bool lion = options.method == OptimizerMethod::kLion;
    attributes.Set("beta1", ToFloat(options.beta1.value_or(0.9)));
    attributes.Set("beta2", ToFloat(options.beta2.value_or(lion ? 0.99 : 0.999)));
  }
  if (IsAdam(options.method)) attributes.Set("epsilon", ToFloat(options.epsilon.value_or(1e-8)));
  if (options.method == OptimizerMethod::kAdagrad) attributes.Set("epsilon", ToFloat(options.epsilon.value_or(1e-10)));
  if (options.method == OptimizerMethod::kSgd && options.momentum.value_or(0) != 0) {
    attributes.Set("momentum", ToFloat(*options.momentum));
    if (options.dampening.value_or(0) != 0) attributes.Set("dampening", ToFloat(*options.dampening));
    if (options.nesterov) attributes.Set("nesterov", int64_t{1});
  }
  return attributes;
}

struct TrainedParameter {
  std::string name;  // canonical
  Value* weight;
  Value* gradient;
  int first_use;
  int release;
};

class OptimizerAppender {
 public:
  OptimizerAppender(Program& program, Graph& graph, const AppendOptimizerOptions& options)
      : program_(program), graph_(graph), options_(options), build_(graph, nullptr, "append_optimizer") {}

  Status Run() {
    RETURN_IF_ERROR(CheckMethod(options_));
    RETURN_IF_ERROR(CheckSchedule(options_.schedule));
    FindParameters();
    if (parameters_.empty())
      return InvalidModelError("append_optimizer: no parameter has a gradient: build_backward first");
    ASSIGN_OR_RETURN(settings_, Settings());
    RETURN_IF_ERROR(ReplaceOutputs());
    RETURN_IF_ERROR(AddControl());
    for (const TrainedParameter& parameter : parameters_) RETURN_IF_ERROR(AddOptimizerNode(parameter));
    RETURN_IF_ERROR(AdvanceCounters());
    return PredicateBuffers();
  }

 private:
  // Those with a gradient, by first use.
  void FindParameters() {
    const NodeOrder order(graph_);
    for (const StateEntry& entry : program_.states()) {
      if (entry.state_class != StateClass::kParameter) continue;
      Value* gradient = graph_.FindRole("gradient/" + entry.parameter);
      Value* weight = graph_.FindValue(entry.name);
      if (gradient == nullptr || weight == nullptr) continue;
      parameters_.push_back({entry.parameter, weight, gradient, order.FirstUse(weight), order.ReleaseOf(gradient)});
    }
    std::stable_sort(parameters_.begin(), parameters_.end(),
                     [](const auto& a, const auto& b) { return a.first_use < b.first_use; });
  }

  StatusOr<std::map<std::string, ParameterSettings>> Settings() const {
    std::vector<NamedParameter> names;
    for (const TrainedParameter& parameter : parameters_) names.push_back({parameter.name, parameter.weight->type()});
    const double decay = options_.weight_decay.value_or(options_.method == OptimizerMethod::kAdamW ? 0.01 : 0);
    return AssignGroups(names, options_, decay);
  }

  Status ReplaceOutputs() {
    for (Value* output : std::vector<Value*>(graph_.outputs())) graph_.RemoveOutput(output);
    for (const char* name : {"loss", "grad_norm", "learning_rate", "status", "applied"}) {
      RETURN_IF_ERROR(FreeName(graph_, name));
    }
    return OkStatus();
  }

  Status AddControl() {
    Value* loss = graph_.FindRole("loss");
    Value* weight = graph_.FindRole("loss_weight");
    if (loss == nullptr || weight == nullptr) {
      return InvalidModelError("append_optimizer: no roles loss and loss_weight: append_loss sets them");
    }
    const std::vector<Value*> sums = build_.Ops("onnxtrain.StepSums", {loss, weight}, {}, 2, "sums");
    Value* norm = build_.Op("onnxtrain.SquaredNorm", GradientsByRelease(), {}, "norm");
    Value* totals = build_.Op("Concat", {sums[0], norm}, {{"axis", int64_t{0}}}, "totals");
    Attributes control;
    if (options_.clip != 0) control.Set("clip", ToFloat(options_.clip));
    if (options_.gradient_multiplier != 1) control.Set("gradient_multiplier", ToFloat(options_.gradient_multiplier));
    const std::vector<Value*> scalars = build_.Ops("onnxtrain.StepControl", {totals}, std::move(control), 4, "loss");
    step_ = CounterState(program_, graph_, "step");
    rate_ = build_.Op("onnxtrain.LearningRate", {step_}, RateAttributes(options_.schedule), "learning_rate");
    RETURN_IF_ERROR(build_.status());
    scale_ = scalars[2];
    apply_ = scalars[3];
    graph_.Rename(sums[1], "status");
    graph_.Rename(scalars[1], "grad_norm");
    graph_.Rename(scale_, graph_.UniqueName("grad_scale"));
    graph_.Rename(apply_, "applied");
    graph_.SetRole("sums", sums[0]);
    graph_.SetRole("norm", norm);
    graph_.SetRole("totals", totals);
    graph_.SetRole("apply", apply_);
    for (Value* output : {scalars[0], scalars[1], rate_, sums[1], apply_}) graph_.AddOutput(output);
    return OkStatus();
  }

  std::vector<Value*> GradientsByRelease() const {
    std::vector<const TrainedParameter*> order;
    for (const TrainedParameter& parameter : parameters_) order.push_back(&parameter);
    std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->release < b->release; });
    std::vector<Value*> gradients;
    for (const TrainedParameter* parameter : order) gradients.push_back(parameter->gradient);
    return gradients;
  }

  // SGD without momentum has none; every other method has what its kind lists.
  std::vector<std::string_view> MomentRoles() const {
    const bool none = options_.method == OptimizerMethod::kSgd && options_.momentum.value_or(0) == 0;
    return none ? std::vector<std::string_view>() : FindOptimizer(EntryOf(options_.method).op)->moments;
  }

  Value* AddMoment(const TrainedParameter& parameter, std::string_view role) {
    StateEntry entry{.name = UniqueStateName(program_, parameter.weight->name() + "." + std::string(role)),
                     .type = parameter.weight->type(),
                     .state_class = StateClass::kOptimizerState,
                     .role = std::string(role),
                     .parameter = parameter.name};
    program_.AddState(entry);
    return StateValue(graph_, entry);
  }

  Status AddOptimizerNode(const TrainedParameter& parameter) {
    std::vector<Value*> states{parameter.weight};
    for (const std::string_view role : MomentRoles()) states.push_back(AddMoment(parameter, role));
    NodeSpec spec{std::string(EntryOf(options_.method).op),
                  {parameter.weight, parameter.gradient},
                  MethodAttributes(options_),
                  {},
                  "append_optimizer",
                  {}};
    spec.inputs.insert(spec.inputs.end(), states.begin() + 1, states.end());
    if (options_.method == OptimizerMethod::kSgd && states.size() == 1) spec.inputs.push_back(nullptr);
    for (Value* scalar : {rate_, scale_, step_, apply_}) spec.inputs.push_back(scalar);
    const ParameterSettings& settings = settings_.at(parameter.name);
    if (settings.weight_decay != 0) spec.attributes.Set("weight_decay", ToFloat(settings.weight_decay));
    if (settings.lr_multiplier != 1) spec.attributes.Set("lr_multiplier", ToFloat(settings.lr_multiplier));
    for (const Value* state : states) spec.output_names.push_back(state->name() + "_new");
    ASSIGN_OR_RETURN(Node * node, graph_.Insert(nullptr, std::move(spec)));
    for (size_t i = 0; i < states.size(); ++i) graph_.SetUpdate(states[i], node->output(i));
    return OkStatus();
  }

  Status AdvanceCounters() {
    Value* attempt = CounterState(program_, graph_, "attempt");
    graph_.SetUpdate(step_, build_.Op("onnxtrain.AdvanceStep", {step_, apply_}, {}, step_->name() + "_new"));
    Value* one = build_.Scalar(1, DType::kInt64);
    graph_.SetUpdate(attempt, build_.Op("Add", {attempt, one}, {}, attempt->name() + "_new"));
    return build_.status();
  }

  // A step that is not applied leaves running statistics alone.
  Status PredicateBuffers() {
    for (Value* state : std::vector<Value*>(graph_.states())) {
      const StateEntry* entry = program_.FindState(state->name());
      if (entry == nullptr || entry->state_class != StateClass::kBuffer || state->update() == nullptr) continue;
      Value* kept = build_.Op("Where", {apply_, state->update(), state}, {}, state->name() + "_kept");
      RETURN_IF_ERROR(build_.status());
      graph_.SetUpdate(state, kept);
    }
    return OkStatus();
  }

  Program& program_;
  Graph& graph_;
  const AppendOptimizerOptions& options_;
  GraphBuilder build_;
  std::vector<TrainedParameter> parameters_;
  std::map<std::string, ParameterSettings> settings_;
  Value* step_ = nullptr;
  Value* rate_ = nullptr;
  Value* scale_ = nullptr;
  Value* apply_ = nullptr;
};

class AppendOptimizerPass : public Pass {
 public:
  explicit AppendOptimizerPass(AppendOptimizerOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "append_optimizer"; }

  StatusOr<bool> Run(Program& program) const override {
    Graph* graph = program.FindGraph(options_.graph);
    if (graph == nullptr) return InvalidModelError("append_optimizer: no graph '" + options_.graph + "'");
    if (!OptimizerNodes(*graph).empty()) return false;
    RETURN_IF_ERROR(OptimizerAppender(program, *graph, options_).Run());
    return true;
  }

 private:
  AppendOptimizerOptions options_;
};

}  // namespace

std::optional<OptimizerMethod> OptimizerMethodFromName(std::string_view name) {
  for (const NamedMethod& entry : kMethods) {
    if (entry.name == name) return entry.method;
  }
  return std::nullopt;
}

std::string_view NameOf(OptimizerMethod method) { return EntryOf(method).name; }

double DefaultLearningRate(OptimizerMethod method) {
  if (method == OptimizerMethod::kAdagrad) return 1e-2;
  return method == OptimizerMethod::kLion ? 1e-4 : 1e-3;
}

std::unique_ptr<Pass> AppendOptimizer(const AppendOptimizerOptions& options) {
  return std::make_unique<AppendOptimizerPass>(options);
}

}  // namespace onnxtrain
