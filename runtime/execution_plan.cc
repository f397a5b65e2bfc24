// SPDX-License-Identifier: Apache-2.0
#include "runtime/execution_plan.h"

#include <algorithm>

#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

std::string NamesOf(const std::vector<Value*>& values) {
  std::string text;
  for (const Value* value : values) {
    if (!text.empty()) text += ", ";
    text += value == nullptr ? "" : value->name();
  }
  return text;
}

std::string TextOf(const Placement& place) {
  return std::string(place.region == Region::kPersistent ? "persistent " : "transient ") +
         std::to_string(place.offset) + " +" + std::to_string(place.bytes);
}

std::string_view KindOf(const Value& value) {
  switch (value.kind()) {
    case ValueKind::kInput:
      return "input";
    case ValueKind::kConstant:
      return "constant";
    case ValueKind::kState:
      return "state";
    case ValueKind::kIntermediate:
      return "";
  }
  return "";
}

class PlanText {
 public:
  PlanText(const ExecutionPlan& plan, const Graph& graph) : plan_(plan), graph_(graph) {
    for (const std::unique_ptr<Node>& node : graph.nodes()) nodes_.push_back(node.get());
    for (const std::string& stream : plan.streams) width_ = std::max(width_, stream.size());
  }

  std::string Run() {
    text_ = "streams";
    for (const std::string& stream : plan_.streams) text_ += " " + stream;
    text_ += "\npersistent " + std::to_string(plan_.persistent_bytes) + "  transient " +
             std::to_string(plan_.transient_bytes) + "  live " + std::to_string(plan_.transient_lower_bound) +
             "  events " + std::to_string(plan_.events) + "\n";
    for (const PlanStep& step : plan_.steps) AddStep(step);
    for (const PlacedValue& placed : plan_.placements) {
      const std::string_view kind = KindOf(*placed.value);
      text_ += "place " + placed.value->name() + "  " + TextOf(placed.placement) + (kind.empty() ? "" : "  ") +
               std::string(kind) + "\n";
    }
    for (size_t i = 0; i < plan_.workspaces.size(); ++i) {
      if (plan_.workspaces[i].bytes == 0) continue;
      text_ += "workspace of " + NamesOf(nodes_[i]->outputs()) + "  " + TextOf(plan_.workspaces[i]) + "\n";
    }
    return std::move(text_);
  }

 private:
  void AddStep(const PlanStep& step) {
    const std::string& stream = plan_.streams[static_cast<size_t>(step.stream)];
    text_ += stream + std::string(width_ + 2 - stream.size(), ' ') + StepText(step) + "\n";
  }

  std::string StepText(const PlanStep& step) const {
    switch (step.kind) {
      case StepKind::kFeed:
        return "feed   " + graph_.inputs()[static_cast<size_t>(step.value)]->name();
      case StepKind::kFetch:
        return "fetch  " + graph_.outputs()[static_cast<size_t>(step.value)]->name();
      case StepKind::kZeroFill:
        return "zero   " + TextOf(step.range);
      case StepKind::kCopy:
        return "copy   " + TextOf(step.range) + " -> " + TextOf(step.target);
      case StepKind::kRecord:
        return "record " + std::to_string(step.event);
      case StepKind::kWait:
        return "wait   " + std::to_string(step.event);
      case StepKind::kLaunch:
        break;
    }
    const Node& node = *nodes_[static_cast<size_t>(step.node)];
    return "launch " + NamesOf(node.outputs()) + " = " + node.op() + " (" + NamesOf(node.inputs()) + ")";
  }

  const ExecutionPlan& plan_;
  const Graph& graph_;
  std::vector<const Node*> nodes_;
  size_t width_ = 0;
  std::string text_;
};

}  // namespace

const Placement* ExecutionPlan::Find(const Value* value) const {
  const auto found = std::find_if(placements.begin(), placements.end(),
                                  [&](const PlacedValue& placed) { return placed.value == value; });
  return found == placements.end() ? nullptr : &found->placement;
}

std::string ToString(const ExecutionPlan& plan, const Graph& graph) { return PlanText(plan, graph).Run(); }

}  // namespace onnxtrain
