// SPDX-License-Identifier: Apache-2.0
// Timelines in Chrome's trace format, which Perfetto and chrome://tracing open: pid is the rank, tid the stream.
#ifndef ONNXTRAIN_RUNTIME_TRACE_H_
#define ONNXTRAIN_RUNTIME_TRACE_H_

#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "runtime/execution_plan.h"
#include "runtime/simulator.h"

namespace onnxtrain {

struct TraceEvent {
  int rank = 0;
  int stream = 0;
  std::string name;      // what is shown: "weight_gradient3 = MatMul"
  std::string category;  // "MatMul", "feed", ...
  double start_us = 0;
  double duration_us = 0;
};

// A complete JSON document. `streams`: names by index, the same for every rank.
std::string TraceJson(std::span<const TraceEvent> events, std::span<const std::string> streams);

// What a step of a plan is called in a trace; empty for records and waits.
TraceEvent DescribeStep(const PlanStep& step, const Graph& graph, const std::vector<const Node*>& nodes);

// A simulated run, the same on each of `ranks` ranks.
std::vector<TraceEvent> TraceOf(const Simulation& simulation, const ExecutionPlan& plan, const Graph& graph, int ranks);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_TRACE_H_
