// SPDX-License-Identifier: Apache-2.0
// A plan with all that is known of it, as JSON: plan.json and `plan --json`. The keys of the document are an interface:
// `streams`, `steps`, `buckets`, `memory`, `exposed_us`, `bound_us`, `digest`, `links`.
#ifndef ONNXTRAIN_RUNTIME_PLAN_JSON_H_
#define ONNXTRAIN_RUNTIME_PLAN_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/cost.h"
#include "runtime/memory_report.h"
#include "runtime/simulator.h"

namespace onnxtrain {

// The plan simulated over one speed of link.
struct LinkReport {
  double gbps = 0;
  double makespan_us = 0;
  double compute_us = 0;
  double exposed_us = 0;
  double bound_us = 0;
  double first_gather_exposed_us = 0;  // how long compute stands still for the first all-gather
};

struct PlanReport {
  const Program* program = nullptr;
  const Graph* graph = nullptr;
  const ExecutionPlan* plan = nullptr;
  uint64_t digest = 0;  // of the program: what ranks compare
  MemoryReport memory;
  std::vector<LinkReport> links;
  Simulation simulation;  // over the first link
};

// Borrows program, graph and plan. `costs` is taken with each of `link_gbps` in turn; at least one.
PlanReport MakePlanReport(const Program& program, const PersistentPlacements& persistent, const Graph& graph,
                          const ExecutionPlan& plan, int stage, const CostModel& costs,
                          const std::vector<double>& link_gbps);

std::string PlanJson(const PlanReport& report);
// For people: totals, buckets, memory with formulas, links, then the steps.
std::string PlanText(const PlanReport& report);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_PLAN_JSON_H_
