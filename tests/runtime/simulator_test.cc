// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/persistent_placements.h"
#include "runtime/scheduler.h"
#include "runtime/trace.h"
#include "tests/support/plan_mutations.h"
#include "tests/support/random_graph.h"
#include "tests/support/symbolic_machine.h"

namespace onnxtrain {
namespace {

ExecutionPlan PlanOf(const Graph& graph, const PersistentPlacements& persistent, ScheduleOptions options = {}) {
  options.persistent = &persistent;
  StatusOr<ExecutionPlan> plan = Schedule(graph, options);
  CHECK_WITH(plan.ok(), plan.status().message());
  return *std::move(plan);
}

// A step of eight layers; matrix products at 1 Tflop/s.
struct Step {
  explicit Step(double gbps, int layers_per_bucket = 2, bool overlap = true) {
    SyntheticStepOptions shape;
    shape.layers_per_bucket = layers_per_bucket;
    shape.width = 512;
    shape.batch = 512;
    graph = std::make_unique<Graph>(MakeSyntheticStep(shape));
    persistent = PlacePersistent(*graph);
    CostModel model;
    model.link_gbps = gbps;
    model.world_size = shape.world_size;
    costs = CostsOf(model);
    costs.node_us = [model](const Node& node) {
      const bool product = node.op() == "MatMul" || node.op() == "WeightGradient";
      return product ? 268.0 : NodeMicroseconds(node, model);
    };
    ScheduleOptions options;
    options.cost_us = costs.node_us;
    options.overlap = overlap;
    plan = PlanOf(*graph, persistent, options);
    simulation = Simulate(plan, *graph, costs);
    bound_us = ExposedBound(plan, *graph, costs);
  }
  // By the name of the first output.
  TimedStep Find(const std::string& output) const {
    std::vector<const Node*> nodes;
    for (const std::unique_ptr<Node>& node : graph->nodes()) nodes.push_back(node.get());
    for (const TimedStep& timed : simulation.steps) {
      const PlanStep& step = plan.steps[timed.step];
      if (step.kind == StepKind::kLaunch && nodes[static_cast<size_t>(step.node)]->output(0)->name() == output)
        return timed;
    }
    CHECK_WITH(false, "no launch of " + output);
    return {};
  }

  std::unique_ptr<Graph> graph;
  PersistentPlacements persistent;
  SimulationCosts costs;
  ExecutionPlan plan;
  Simulation simulation;
  double bound_us = 0;
};

TEST(Simulator, AllButTheLastReduceScatterOverlapBackward) {
  const Step step(100);
  const double backward_ends = step.Find("weight_gradient0").end_us;
  for (const char* early : {"reduced3", "reduced2", "reduced1"})
    EXPECT_LT(step.Find(early).end_us, backward_ends) << early;
  EXPECT_GE(step.Find("reduced0").start_us, backward_ends);
}

TEST(Simulator, ReduceScattersStartWhenTheirGradientAndTheirPredecessorAreDone) {
  for (double gbps : {10.0, 100.0}) {
    const Step step(gbps);
    double link_free = step.Find("gathered3").end_us;
    for (int bucket = 3; bucket >= 0; --bucket) {
      const double last_gradient = step.Find("weight_gradient" + std::to_string(2 * bucket)).end_us;
      const TimedStep reduce = step.Find("reduced" + std::to_string(bucket));
      EXPECT_DOUBLE_EQ(reduce.start_us, std::max(link_free, last_gradient)) << gbps << " " << bucket;
      link_free = reduce.end_us;
    }
  }
}

TEST(Simulator, ExposedTimeIsAtLeastTheBoundAndCloseToIt) {
  for (double gbps : {1.0, 10.0, 100.0}) {
    for (int layers_per_bucket : {1, 2, 3, 8}) {
      const Step step(gbps, layers_per_bucket);
      EXPECT_GE(step.simulation.exposed_us, step.bound_us) << gbps << " " << layers_per_bucket;
      if (layers_per_bucket > 1) continue;
      EXPECT_LE(step.simulation.exposed_us, 1.25 * step.bound_us + 40) << gbps << " " << layers_per_bucket;
    }
  }
}

TEST(Simulator, OverlapIsNeverSlowerThanOneStream) {
  for (double gbps : {1.0, 10.0, 100.0}) {
    const Step both(gbps);
    const Step one(gbps, 2, /*overlap=*/false);
    EXPECT_NEAR(one.simulation.exposed_us, one.simulation.communication_us, 1e-6);
    EXPECT_LT(both.simulation.makespan_us, one.simulation.makespan_us);
  }
}

TEST(Simulator, TheBoundHoldsForRandomGraphs) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Graph graph = MakeRandomGraph(seed, SyntheticRegistry());
    const PersistentPlacements persistent = PlacePersistent(graph);
    const ExecutionPlan plan = PlanOf(graph, persistent);
    CostModel model;
    model.world_size = 2;
    const SimulationCosts costs = CostsOf(model);
    EXPECT_GE(Simulate(plan, graph, costs).exposed_us + 1e-9, ExposedBound(plan, graph, costs)) << "seed " << seed;
  }
}

// The claim of the verifier, tried out: whatever the speed of the streams, the same bytes, and those of one stream
// alone.
TEST(Simulator, EveryInterleavingGivesEqualBits) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Graph graph = MakeRandomGraph(seed, SyntheticRegistry());
    const PersistentPlacements persistent = PlacePersistent(graph);
    ScheduleOptions serial;
    serial.overlap = false;
    const ExecutionPlan plain = PlanOf(graph, persistent, serial);
    SymbolicMachine reference(graph, plain);
    for (int run = 0; run < 2; ++run) reference.Run(RandomInterleaving(plain, 0));
    ScheduleOptions options;
    options.buckets_in_flight = static_cast<int>(seed % 3);
    const ExecutionPlan plan = PlanOf(graph, persistent, options);
    for (uint64_t order = 0; order < 20; ++order) {
      SymbolicMachine machine(graph, plan);
      for (uint64_t run = 0; run < 2; ++run) machine.Run(RandomInterleaving(plan, order * 2 + run));
      ASSERT_TRUE(machine.Results() == reference.Results()) << "seed " << seed << ", order " << order;
    }
  }
}

// The machine above can tell: without a wait some order gives other bits, for a good part of the waits.
TEST(Simulator, AMissingWaitShowsInSomeInterleaving) {
  int waits = 0;
  int seen = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Graph graph = MakeRandomGraph(seed, SyntheticRegistry());
    const PersistentPlacements persistent = PlacePersistent(graph);
    const ExecutionPlan plan = PlanOf(graph, persistent);
    SymbolicMachine reference(graph, plan);
    reference.Run(RandomInterleaving(plan, 0));
    for (const BrokenPlan& broken : WithoutEachWait(plan)) {
      ++waits;
      bool differs = false;
      for (uint64_t order = 0; order < 40 && !differs; ++order) {
        SymbolicMachine machine(graph, broken.plan);
        machine.Run(RandomInterleaving(broken.plan, order));
        differs = machine.Results() != reference.Results();
      }
      seen += differs ? 1 : 0;
    }
  }
  EXPECT_GT(seen * 4, waits);
}

TEST(Trace, IsAChromeTraceOfAllRanks) {
  const Step step(10);
  const std::vector<TraceEvent> events = TraceOf(step.simulation, step.plan, *step.graph, 2);
  const nlohmann::json trace = nlohmann::json::parse(TraceJson(events, step.plan.streams));
  ASSERT_EQ(trace["traceEvents"].size(), events.size() + 2 * (1 + step.plan.streams.size()));
  EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "rank 0");
  const nlohmann::json& last = trace["traceEvents"].back();
  EXPECT_EQ(last["ph"], "X");
  EXPECT_EQ(last["pid"], 1);
  EXPECT_GE(last["dur"], 0.0);
}

}  // namespace
}  // namespace onnxtrain
