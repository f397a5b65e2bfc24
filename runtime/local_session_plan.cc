// SPDX-License-Identifier: Apache-2.0
// Plans of a LocalSession for people, and what its streams did when.
#include "runtime/local_session.h"

namespace onnxtrain {

StatusOr<std::string> LocalSession::PlanText(std::string_view graph) const {
  const Variant& full = *variants_.at(options_.batch_size);
  const auto found = full.graphs.find(graph);
  if (found == full.graphs.end()) return UsageError("no plan of a graph '" + std::string(graph) + "'");
  return ToString(found->second.plan, *found->second.graph);
}

StatusOr<PlanReport> LocalSession::Report(const std::string& graph, const std::vector<double>& link_gbps) {
  Variant& full = *variants_.at(options_.batch_size);
  if (full.built.program.FindGraph(graph) == nullptr) {
    std::string names;
    for (const auto& [name, entry] : full.built.program.graphs()) names += (names.empty() ? "" : ", ") + name;
    return UsageError("the program has no graph '" + graph + "'; it has " + names);
  }
  ASSIGN_OR_RETURN(const PlannedGraph* planned, Planned(full, graph));
  return MakePlanReport(full.built.program, full.placements, *planned->graph, planned->plan, options_.zero,
                        options_.machine, link_gbps);
}

std::vector<std::string> LocalSession::stream_names() const {
  std::vector<std::string> names;
  for (const auto& [name, planned] : variants_.at(options_.batch_size)->graphs) {
    if (planned.plan.streams.size() > names.size()) names = planned.plan.streams;
  }
  return names;
}

void LocalSession::CollectTrace(Submissions& submissions) {
  for (const Submission& submission : submissions) {
    std::vector<const Node*> nodes;
    for (const std::unique_ptr<Node>& node : submission.planned->graph->nodes()) nodes.push_back(node.get());
    const std::vector<PlanStep>& steps = submission.planned->plan.steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind == StepKind::kRecord || steps[i].kind == StepKind::kWait) continue;
      TraceEvent event = DescribeStep(steps[i], *submission.planned->graph, nodes);
      event.rank = submission.rank;
      event.start_us = submission.times->start_us(i);
      event.duration_us = submission.times->end_us(i) - event.start_us;
      trace_.push_back(std::move(event));
    }
  }
}

}  // namespace onnxtrain
