// SPDX-License-Identifier: Apache-2.0
#include "runtime/node_runner.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

constexpr size_t kWorkspaceAlignment = 64;

std::byte* Align(std::vector<std::byte>& workspace) {
  const auto address = reinterpret_cast<uintptr_t>(workspace.data());
  return workspace.data() + (kWorkspaceAlignment - address % kWorkspaceAlignment) % kWorkspaceAlignment;
}

// The graph input whose elements `value` holds in the same order; null when something was computed.
const Value* FedFrom(const Value* value) {
  constexpr std::string_view kKeepElements[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Cast", "Identity"};
  while (value != nullptr && value->producer() != nullptr) {
    const std::string& op = value->producer()->op();
    if (std::find(std::begin(kKeepElements), std::end(kKeepElements), op) == std::end(kKeepElements)) return nullptr;
    value = value->producer()->input(0);
  }
  return value != nullptr && value->kind() == ValueKind::kInput ? value : nullptr;
}

// What the labels or indices of a node may be.
struct AllowedRange {
  int64_t least = 0;
  int64_t most = 0;
  std::optional<int64_t> ignored;
  bool Holds(int64_t number) const { return (number >= least && number <= most) || number == ignored; }
  std::string Text() const {
    return std::to_string(least) + " .. " + std::to_string(most) + (ignored ? " or " + std::to_string(*ignored) : "");
  }
};

std::optional<AllowedRange> RangeOf(const Node& node, DeviceFault fault) {
  if (node.inputs().size() < 2 || node.input(0) == nullptr || node.input(1) == nullptr) return std::nullopt;
  const Shape& shape = node.input(0)->type().shape;
  if (fault == DeviceFault::kLabelOutOfRange && !IsFloating(node.input(1)->type().dtype) && shape.size() >= 2) {
    AllowedRange range{0, shape[1] - 1, std::nullopt};
    if (node.attributes().Has("ignore_index")) range.ignored = node.attributes().Int("ignore_index", 0);
    return range;
  }
  if (fault != DeviceFault::kIndexOutOfRange || node.op() != "Gather") return std::nullopt;
  const int64_t axis = node.attributes().Int("axis", 0);
  const int64_t size = shape[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)];
  return AllowedRange{-size, size - 1, std::nullopt};
}

// ": element 37 of 'labels' is 3, expected 0 .. 2", or "".
std::string FirstOutside(const Node& node, DeviceFault fault, const FedBytes& fed) {
  const std::optional<AllowedRange> range = RangeOf(node, fault);
  const Value* input = range ? FedFrom(node.input(1)) : nullptr;
  const std::byte* bytes = input != nullptr && fed ? fed(input) : nullptr;
  if (bytes == nullptr || !IsInteger(input->type().dtype)) return "";
  Tensor copy(input->type());
  std::memcpy(copy.data(), bytes, copy.bytes());
  for (int64_t i = 0; i < copy.elements(); ++i) {
    if (range->Holds(copy.IntAt(i))) continue;
    return ": element " + std::to_string(i) + " of '" + input->name() + "' (" + ToString(input->type()) + ") is " +
           std::to_string(copy.IntAt(i)) + ", expected " + range->Text();
  }
  return "";
}

}  // namespace

Status DescribeFault(uint64_t status_word, const Graph& graph, const FedBytes& fed) {
  const auto fault = static_cast<DeviceFault>(status_word >> 32);
  const uint64_t number = (status_word & 0xFFFFFFFFu) - 1;
  std::string where = "a node";
  std::string found;
  uint64_t index = 0;
  for (const std::unique_ptr<Node>& candidate : graph.nodes()) {
    if (index++ != number) continue;
    where = candidate->Describe();
    found = FirstOutside(*candidate, fault, fed);
  }
  switch (fault) {
    case DeviceFault::kLabelOutOfRange:
      return InvalidDataError("label out of range at " + where + found +
                              "; labels must be 0 .. classes-1 or the ignore index: check --labels and --ignore-index");
    case DeviceFault::kIndexOutOfRange:
      return InvalidDataError("index out of range at " + where + found +
                              "; an index input must lie inside the axis it selects from (an embedding has as many "
                              "rows as its weight): check the data");
    case DeviceFault::kHostKernel:
      return InternalError("the kernel of " + where + ", which ran on the host, failed");
    default: return NonFiniteError("a value that is not finite at " + where);
  }
}

StatusOr<std::unique_ptr<NodeRunner>> NodeRunner::Create(const Graph& graph, const KernelRegistry& kernels,
                                                         const NodeRunnerOptions& options) {
  std::unique_ptr<NodeRunner> runner(new NodeRunner(graph, options));
  RETURN_IF_ERROR(runner->CreateSteps(kernels));
  for (const Value* input : graph.inputs()) runner->values_[input] = Tensor(input->type());
  for (const Value* state : graph.states()) runner->values_[state] = Tensor(state->type());
  for (const Value* constant : graph.constants()) runner->values_[constant] = *constant->constant();
  for (const std::unique_ptr<Node>& node : graph.nodes()) {
    for (const Value* output : node->outputs()) {
      if (output != nullptr) runner->values_[output] = Tensor(output->type());
    }
  }
  runner->BindSteps();
  return runner;
}

Status NodeRunner::CreateSteps(const KernelRegistry& kernels) {
  std::string missing;
  int index = 0;
  for (const std::unique_ptr<Node>& node : graph_.nodes()) {
    KernelContext context{*node};
    context.node_index = index++;
    context.rank = options_.rank;
    context.world_size = options_.world_size;
    context.accumulation = options_.accumulation;
    context.threads = options_.threads;
    context.seed = options_.seed;
    context.layout = options_.layout;
    if (node->def().collective) return InternalError("no communicator for " + node->Describe());
    StatusOr<std::unique_ptr<Kernel>> kernel = kernels.Create(context);
    if (!kernel.ok()) {
      missing += (missing.empty() ? "" : "\n") + kernel.status().message();
      continue;
    }
    Step& step = steps_.emplace_back();
    step.node = node.get();
    step.kernel = *std::move(kernel);
    step.workspace.resize(step.kernel->workspace_bytes() + kWorkspaceAlignment);
  }
  return missing.empty() ? OkStatus() : InvalidModelError(missing);
}

void NodeRunner::BindSteps() {
  for (Step& step : steps_) {
    for (const Value* input : step.node->inputs()) {
      step.inputs.push_back(input == nullptr ? nullptr : values_.at(input).data());
    }
    for (const Value* output : step.node->outputs()) {
      step.outputs.push_back(output == nullptr ? nullptr : values_.at(output).data());
    }
  }
}

Status NodeRunner::Set(const std::string& name, const Tensor& tensor) {
  const Value* value = graph_.FindValue(name);
  if (value == nullptr || (value->kind() != ValueKind::kInput && value->kind() != ValueKind::kState)) {
    return UsageError("'" + name + "' is not an input of the graph");
  }
  if (!(value->type() == tensor.type())) {
    return InvalidDataError("'" + name + "' has type " + ToString(tensor.type()) + ", the graph expects " +
                            ToString(value->type()));
  }
  if (tensor.bytes() != 0) std::memcpy(values_.at(value).data(), tensor.data(), tensor.bytes());
  return OkStatus();
}

Status NodeRunner::Run(const Observer& observer) {
  uint64_t status_word = 0;
  const RunContext run{options_.micro_batch};
  for (Step& step : steps_) {
    LaunchArgs args;
    args.inputs = step.inputs;
    args.outputs = step.outputs;
    args.workspace = Align(step.workspace);
    args.status_word = &status_word;
    args.run = &run;
    RETURN_IF_ERROR(step.kernel->Launch(args).Prepend(step.node->Describe()));
    RETURN_IF_ERROR(CheckStatusWord(status_word));
    if (observer) RETURN_IF_ERROR(observer(*step.node, *this));
  }
  return OkStatus();
}

Status NodeRunner::CheckStatusWord(uint64_t word) const {
  if (word == 0) return OkStatus();
  return DescribeFault(word, graph_, [this](const Value* input) { return values_.at(input).data(); });
}

void NodeRunner::ApplyUpdates() {
  std::vector<std::pair<const Value*, Tensor>> updates;
  for (const Value* state : graph_.states()) {
    if (state->update() != nullptr) updates.emplace_back(state, values_.at(state->update()));
  }
  for (const auto& [state, update] : updates) {
    if (update.bytes() != 0) std::memcpy(values_.at(state).data(), update.data(), update.bytes());
  }
}

StatusOr<Tensor> NodeRunner::Get(const std::string& name) const {
  const Value* value = graph_.FindValue(name);
  if (value == nullptr) return UsageError("the graph has no value '" + name + "'");
  return values_.at(value);
}

}  // namespace onnxtrain
