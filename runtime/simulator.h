// SPDX-License-Identifier: Apache-2.0
// The `sim` device: a plan replayed on a virtual clock, without memory or arithmetic. Ranks are alike, so one is
// replayed; a collective takes the time its node costs.
#ifndef ONNXTRAIN_RUNTIME_SIMULATOR_H_
#define ONNXTRAIN_RUNTIME_SIMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "graph/cost.h"
#include "graph/graph.h"
#include "runtime/execution_plan.h"

namespace onnxtrain {

struct SimulationCosts {
  std::function<double(const Node& node)> node_us;
  // The part of a collective's time that does not depend on its bytes.
  std::function<double(const Node& node)> latency_us;
  double copy_bytes_per_us = 10e3;  // feeds, fetches, zero fills and copies
};
SimulationCosts CostsOf(const CostModel& model);
double StepMicroseconds(const PlanStep& step, const std::vector<const Node*>& nodes, const SimulationCosts& costs);

struct TimedStep {
  size_t step = 0;  // index in plan.steps
  double start_us = 0;
  double end_us = 0;
};

struct Simulation {
  std::vector<TimedStep> steps;  // all but records and waits, in the order of the plan
  double makespan_us = 0;
  double compute_us = 0;        // busy time of stream 0, without collectives that run there
  double communication_us = 0;  // all other busy time
  double exposed_us = 0;        // makespan - compute_us: what communication adds to the step
};

Simulation Simulate(const ExecutionPlan& plan, const Graph& graph, const SimulationCosts& costs);

// What no schedule can beat that keeps the plan's order of compute and its gathers, however gradients are cut into
// buckets: compute runs in order, the link carries one thing at a time, every byte of a gradient after it exists, every
// byte of a gather before its first use. Returns the part of it that exceeds the compute time: the least exposed time.
double ExposedBound(const ExecutionPlan& plan, const Graph& graph, const SimulationCosts& costs);

// The steps of the plan in an order in which streams of any speed may run them: one stream after the other as a
// generator with this seed decides, waits respected. For running a plan on one thread in many ways.
std::vector<size_t> RandomInterleaving(const ExecutionPlan& plan, uint64_t seed);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_SIMULATOR_H_
