// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator.h"

#include <algorithm>
#include <random>

#include "graph/op_registry.h"

namespace onnxtrain {

SimulationCosts CostsOf(const CostModel& model) {
  SimulationCosts costs;
  costs.node_us = [model](const Node& node) { return NodeMicroseconds(node, model); };
  costs.latency_us = [model](const Node& node) {
    const double once = CollectiveMicroseconds(0, model);
    return node.op() == "onnxtrain.AllReduce" ? 2 * once : once;
  };
  costs.copy_bytes_per_us = model.memory_gbps * 1e3;
  return costs;
}

double StepMicroseconds(const PlanStep& step, const std::vector<const Node*>& nodes, const SimulationCosts& costs) {
  switch (step.kind) {
    case StepKind::kLaunch:
      return costs.node_us(*nodes[static_cast<size_t>(step.node)]);
    case StepKind::kFeed:
    case StepKind::kCopy:
      return static_cast<double>(step.target.bytes) / costs.copy_bytes_per_us;
    case StepKind::kFetch:
    case StepKind::kZeroFill:
      return static_cast<double>(step.range.bytes) / costs.copy_bytes_per_us;
    case StepKind::kRecord:
    case StepKind::kWait:
      break;
  }
  return 0;
}

Simulation Simulate(const ExecutionPlan& plan, const Graph& graph, const SimulationCosts& costs) {
  std::vector<const Node*> nodes;
  for (const std::unique_ptr<Node>& node : graph.nodes()) nodes.push_back(node.get());
  Simulation result;
  std::vector<double> now(plan.streams.size(), 0);
  std::vector<double> events(static_cast<size_t>(plan.events), 0);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    double& clock = now[static_cast<size_t>(step.stream)];
    if (step.kind == StepKind::kRecord) {
      events[static_cast<size_t>(step.event)] = clock;
    } else if (step.kind == StepKind::kWait) {
      clock = std::max(clock, events[static_cast<size_t>(step.event)]);
    } else {
      const double duration = StepMicroseconds(step, nodes, costs);
      result.steps.push_back({i, clock, clock + duration});
      clock += duration;
      const bool collective = step.kind == StepKind::kLaunch && nodes[static_cast<size_t>(step.node)]->def().collective;
      (step.stream == 0 && !collective ? result.compute_us : result.communication_us) += duration;
    }
  }
  result.makespan_us = *std::max_element(now.begin(), now.end());
  result.exposed_us = result.makespan_us - result.compute_us;
  return result;
}

std::vector<size_t> RandomInterleaving(const ExecutionPlan& plan, uint64_t seed) {
  std::vector<std::vector<size_t>> queues(plan.streams.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) queues[static_cast<size_t>(plan.steps[i].stream)].push_back(i);
  std::vector<size_t> heads(queues.size(), 0);
  std::vector<bool> recorded(static_cast<size_t>(plan.events), false);
  std::mt19937_64 random(seed);
  std::vector<size_t> order;
  while (order.size() < plan.steps.size()) {
    std::vector<size_t> able;
    for (size_t s = 0; s < queues.size(); ++s) {
      if (heads[s] == queues[s].size()) continue;
      const PlanStep& step = plan.steps[queues[s][heads[s]]];
      if (step.kind != StepKind::kWait || recorded[static_cast<size_t>(step.event)]) able.push_back(s);
    }
    CHECK_WITH(!able.empty(), "every stream of the plan waits for another one");
    const size_t stream = able[random() % able.size()];
    const size_t index = queues[stream][heads[stream]++];
    if (plan.steps[index].kind == StepKind::kRecord) recorded[static_cast<size_t>(plan.steps[index].event)] = true;
    order.push_back(index);
  }
  return order;
}

}  // namespace onnxtrain
