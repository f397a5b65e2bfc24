// SPDX-License-Identifier: Apache-2.0
#include "runtime/non_finite_search.h"

#include <cmath>
#include <optional>
#include <set>

namespace onnxtrain {
namespace {

struct Finding {
  const Node* node = nullptr;
  const Value* value = nullptr;
  int64_t element = 0;
  double number = 0;
};

// The first element that is NaN, or infinite where `infinite` counts too.
std::optional<Finding> FindIn(const Value* value, const Tensor& tensor, bool infinite) {
  if (!IsFloating(tensor.dtype())) return std::nullopt;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double number = tensor.DoubleAt(i);
    if (std::isnan(number) || (infinite && std::isinf(number))) return Finding{value->producer(), value, i, number};
  }
  return std::nullopt;
}

// Follows infinities upwards from a NaN: the node that made the first of them is the cause.
Finding Cause(const Finding& found, const NodeRunner& runner) {
  Finding cause = found;
  std::set<const Value*> seen;
  for (bool moved = true; moved && cause.node != nullptr;) {
    moved = false;
    for (const Value* input : cause.node->inputs()) {
      if (input == nullptr || !seen.insert(input).second) continue;
      const std::optional<Finding> above = FindIn(input, runner.value(input), /*infinite=*/true);
      if (!above) continue;
      cause = *above;
      moved = true;
      break;
    }
  }
  return cause;
}

std::string NameOf(double number) { return std::isnan(number) ? "NaN" : number > 0 ? "infinity" : "-infinity"; }

Status Describe(const Finding& cause, const Finding& found) {
  std::string message = "first value that is not finite: element " + std::to_string(cause.element) + " of '" +
                        cause.value->name() + "' (" + ToString(cause.value->type()) + ") is " + NameOf(cause.number);
  message += cause.node == nullptr ? ", which is an input of the step or a weight" : ", made by " + cause.node->Describe();
  if (cause.value != found.value) {
    message += "; the first NaN is '" + found.value->name() + "' of " + found.node->Describe();
  }
  return NonFiniteError(message + ". Check the data, lower --lr, or use --clip-grad");
}

Status CheckOutputs(const Node& node, const NodeRunner& runner) {
  for (const Value* output : node.outputs()) {
    if (output == nullptr) continue;
    const std::optional<Finding> found = FindIn(output, runner.value(output), /*infinite=*/false);
    if (found) return Describe(Cause(*found, runner), *found);
  }
  return OkStatus();
}

}  // namespace

Status SearchNonFinite(const Program& program, const KernelRegistry& kernels, const NodeRunnerOptions& options,
                       const std::map<std::string, Tensor>& states, const std::map<std::string, Tensor>& feeds) {
  const Graph* graph = program.FindGraph("step");
  CHECK(graph != nullptr);
  ASSIGN_OR_RETURN(std::unique_ptr<NodeRunner> runner, NodeRunner::Create(*graph, kernels, options));
  for (const Value* state : graph->states()) {
    const auto bytes = states.find(CanonicalName(*program.FindState(state->name())));
    if (bytes != states.end()) RETURN_IF_ERROR(runner->Set(state->name(), bytes->second));
  }
  for (const Value* input : graph->inputs()) RETURN_IF_ERROR(runner->Set(input->name(), feeds.at(input->name())));
  RETURN_IF_ERROR(runner->Run(CheckOutputs));
  // No NaN: an infinite loss or gradient is the fault, and the first infinity its place.
  for (const std::unique_ptr<Node>& node : graph->nodes()) {
    for (const Value* output : node->outputs()) {
      if (output == nullptr) continue;
      const std::optional<Finding> found = FindIn(output, runner->value(output), /*infinite=*/true);
      if (found && !std::isfinite(runner->value(graph->FindRole("loss")).DoubleAt(0))) return Describe(*found, *found);
    }
  }
  return OkStatus();
}

}  // namespace onnxtrain
