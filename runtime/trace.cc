// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace.h"

#include <nlohmann/json.hpp>
#include <set>

namespace onnxtrain {
namespace {

nlohmann::ordered_json Metadata(const char* name, int rank, int stream, const std::string& shown) {
  return {{"ph", "M"}, {"name", name}, {"pid", rank}, {"tid", stream}, {"args", {{"name", shown}}}};
}

}  // namespace

std::string TraceJson(std::span<const TraceEvent> events, std::span<const std::string> streams) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::set<int> ranks;
  for (const TraceEvent& event : events) ranks.insert(event.rank);
  for (int rank : ranks) {
    list.push_back(Metadata("process_name", rank, 0, "rank " + std::to_string(rank)));
    for (size_t stream = 0; stream < streams.size(); ++stream) {
      list.push_back(Metadata("thread_name", rank, static_cast<int>(stream), streams[stream]));
    }
  }
  for (const TraceEvent& event : events) {
    list.push_back({{"ph", "X"},
                    {"name", event.name},
                    {"cat", event.category},
                    {"pid", event.rank},
                    {"tid", event.stream},
                    {"ts", event.start_us},
                    {"dur", event.duration_us}});
  }
  const nlohmann::ordered_json document = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(list)}};
  // Names come from models and may be any bytes.
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

TraceEvent DescribeStep(const PlanStep& step, const Graph& graph, const std::vector<const Node*>& nodes) {
  TraceEvent event;
  event.stream = step.stream;
  const auto named = [&](const std::string& category, const std::string& of) {
    event.category = category;
    event.name = of.empty() ? category : category + " " + of;
  };
  switch (step.kind) {
    case StepKind::kFeed:
      named("feed", graph.inputs()[static_cast<size_t>(step.value)]->name());
      break;
    case StepKind::kFetch:
      named("fetch", graph.outputs()[static_cast<size_t>(step.value)]->name());
      break;
    case StepKind::kZeroFill:
      named("zero", "");
      break;
    case StepKind::kCopy:
      named("copy", "");
      break;
    case StepKind::kLaunch: {
      const Node& node = *nodes[static_cast<size_t>(step.node)];
      event.category = node.op();
      for (const Value* output : node.outputs()) {
        if (output != nullptr) event.name += (event.name.empty() ? "" : ", ") + output->name();
      }
      event.name += " = " + node.op();
      break;
    }
    case StepKind::kRecord:
    case StepKind::kWait:
      break;
  }
  return event;
}

std::vector<TraceEvent> TraceOf(const Simulation& simulation, const ExecutionPlan& plan, const Graph& graph,
                                int ranks) {
  std::vector<const Node*> nodes;
  for (const std::unique_ptr<Node>& node : graph.nodes()) nodes.push_back(node.get());
  std::vector<TraceEvent> events;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const TimedStep& timed : simulation.steps) {
      TraceEvent event = DescribeStep(plan.steps[timed.step], graph, nodes);
      event.rank = rank;
      event.start_us = timed.start_us;
      event.duration_us = timed.end_us - timed.start_us;
      events.push_back(std::move(event));
    }
  }
  return events;
}

}  // namespace onnxtrain
