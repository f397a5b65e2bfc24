// SPDX-License-Identifier: Apache-2.0
#include "runtime/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "runtime/persistent_placements.h"
#include "runtime/plan_verifier.h"
#include "tests/support/random_graph.h"

namespace onnxtrain {
namespace {

using testing::HasSubstr;

// A graph with its plan.
struct Planned {
  explicit Planned(Graph made, ScheduleOptions wanted = {})
      : graph(std::move(made)), persistent(PlacePersistent(graph)) {
    wanted.persistent = &persistent;
    StatusOr<ExecutionPlan> scheduled = Schedule(graph, wanted);
    CHECK_WITH(scheduled.ok(), scheduled.status().message());
    plan = *std::move(scheduled);
    for (const std::unique_ptr<Node>& node : graph.nodes()) nodes.push_back(node.get());
  }
  std::string OpOf(const PlanStep& step) const {
    return step.kind == StepKind::kLaunch ? nodes[static_cast<size_t>(step.node)]->op() : "";
  }
  std::string OutputOf(const PlanStep& step) const { return nodes[static_cast<size_t>(step.node)]->output(0)->name(); }
  int Count(StepKind kind) const {
    return static_cast<int>(
        std::count_if(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& step) { return step.kind == kind; }));
  }

  Graph graph;
  PersistentPlacements persistent;
  ExecutionPlan plan;
  std::vector<const Node*> nodes;
};

SyntheticStepOptions FourBuckets() {
  SyntheticStepOptions options;
  options.layers = 8;
  options.layers_per_bucket = 2;
  return options;
}

TEST(Scheduler, EqualGraphsGiveEqualPlans) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Planned first(MakeRandomGraph(seed, SyntheticRegistry()));
    const Planned second(MakeRandomGraph(seed, SyntheticRegistry()));
    EXPECT_EQ(ToString(first.plan, first.graph), ToString(second.plan, second.graph)) << "seed " << seed;
  }
}

TEST(Scheduler, LaunchesNeitherViewsNorFilledBuckets) {
  const Planned step(MakeSyntheticStep(FourBuckets()));
  for (const PlanStep& one : step.plan.steps) EXPECT_THAT(step.OpOf(one), testing::Not(HasSubstr("Bucket")));
  EXPECT_EQ(step.Count(StepKind::kCopy), 0);
  const Value* bucket = step.graph.FindValue("bucket1");
  const Value* gradient = step.graph.FindValue("weight_gradient3");
  EXPECT_EQ(step.plan.Find(gradient)->offset, step.plan.Find(bucket)->offset + gradient->type().bytes());
}

// The only waits of a reduce-scatter are its last gradient and, by the order of its stream, its predecessor.
TEST(Scheduler, AReduceScatterWaitsForItsLastGradientOnly) {
  const Planned step(MakeSyntheticStep(FourBuckets()));
  std::vector<std::string> last_gradients;
  std::set<int> waited;
  std::string last_launch;
  std::vector<std::string> recorded_after(static_cast<size_t>(step.plan.events));
  for (const PlanStep& one : step.plan.steps) {
    if (one.kind == StepKind::kRecord) recorded_after[static_cast<size_t>(one.event)] = last_launch;
    if (one.kind == StepKind::kWait && one.stream == 1) waited.insert(one.event);
    if (one.kind != StepKind::kLaunch) continue;
    if (one.stream == 0) last_launch = step.OutputOf(one);
    if (step.OpOf(one) == "onnxtrain.ReduceScatter") {
      ASSERT_EQ(waited.size(), 1u) << step.OutputOf(one);
      last_gradients.push_back(recorded_after[static_cast<size_t>(*waited.begin())]);
      EXPECT_EQ(last_gradients.back(), last_launch) << "issued late";
    }
    if (one.stream == 1) waited.clear();
  }
  EXPECT_THAT(last_gradients,
              testing::ElementsAre("weight_gradient6", "weight_gradient4", "weight_gradient2", "weight_gradient0"));
}

TEST(Scheduler, GathersComeFirstInOrderOfFirstUse) {
  const Planned step(MakeSyntheticStep(FourBuckets()));
  std::vector<std::string> gathers;
  for (const PlanStep& one : step.plan.steps) {
    if (one.kind != StepKind::kLaunch) continue;
    if (step.OpOf(one) != "onnxtrain.AllGather") break;
    gathers.push_back(step.OutputOf(one));
  }
  EXPECT_THAT(gathers, testing::ElementsAre("gathered0", "gathered1", "gathered2", "gathered3"));
}

TEST(Scheduler, WithoutOverlapThereIsOneStreamAndNothingToWaitFor) {
  ScheduleOptions options;
  options.overlap = false;
  const Planned step(MakeSyntheticStep(FourBuckets()), options);
  EXPECT_THAT(step.plan.streams, testing::ElementsAre("compute"));
  EXPECT_EQ(step.Count(StepKind::kWait) + step.Count(StepKind::kRecord), 0);
  EXPECT_TRUE(VerifyPlan(step.graph, step.plan).ok());
}

// Weights that dwarf the activations: without a limit four buckets are in memory beside the shards that were reduced,
// with it two.
TEST(Scheduler, BucketsInFlightBoundTheirMemory) {
  SyntheticStepOptions wide = FourBuckets();
  wide.batch = 1;
  ScheduleOptions options;
  const Planned all(MakeSyntheticStep(wide), options);
  options.buckets_in_flight = 2;
  const Planned two(MakeSyntheticStep(wide), options);
  const size_t bucket = all.graph.FindValue("bucket0")->type().bytes();
  EXPECT_GT(2 * all.plan.transient_bytes, 9 * bucket);
  EXPECT_LT(two.plan.transient_bytes, 4 * bucket);
  EXPECT_TRUE(VerifyPlan(two.graph, two.plan).ok());
}

TEST(Scheduler, KeepsOrRefusesAMemoryLimit) {
  SyntheticStepOptions wide = FourBuckets();
  wide.batch = 1;
  const Planned free(MakeSyntheticStep(wide));
  ScheduleOptions options;
  options.persistent = &free.persistent;
  options.memory_limit = free.persistent.bytes + free.plan.transient_bytes - 1;
  const StatusOr<ExecutionPlan> tight = Schedule(free.graph, options);
  ASSERT_TRUE(tight.ok()) << tight.status().message();
  EXPECT_LE(free.persistent.bytes + tight->transient_bytes, options.memory_limit);

  options.memory_limit = free.persistent.bytes;
  const StatusOr<ExecutionPlan> refused = Schedule(free.graph, options);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("the memory limit is " + std::to_string(options.memory_limit)));
}

// States that become each other's values: one of them is kept aside while the other is overwritten.
TEST(Scheduler, StatesMayExchangeTheirValues) {
  Graph graph(SyntheticRegistry(), "swap");
  Value* a = graph.AddState("a", {DType::kFloat, {8}});
  Value* b = graph.AddState("b", {DType::kFloat, {8}});
  graph.SetUpdate(a, b);
  graph.SetUpdate(b, a);
  const Planned swap(std::move(graph));
  EXPECT_EQ(swap.Count(StepKind::kCopy), 3);
  const Status verified = VerifyPlan(swap.graph, swap.plan);
  EXPECT_TRUE(verified.ok()) << verified.message();
}

TEST(Scheduler, RefusesAGraphThatIsNotPlaced) {
  Graph graph(SyntheticRegistry(), "lonely");
  graph.AddState("w", {DType::kFloat, {8}});
  const PersistentPlacements nothing;
  ScheduleOptions options;
  options.persistent = &nothing;
  EXPECT_THAT(Schedule(graph, options).status().message(),
              HasSubstr("'w' (float[8], 32 bytes) of graph 'lonely' has no place"));
}

TEST(PersistentPlacements, AlignsStatesAndSharesEqualConstants) {
  Graph graph(SyntheticRegistry(), "constants");
  graph.AddState("a", {DType::kFloat, {3}});
  graph.AddState("b", {DType::kFloat, {65}});
  const Value* one = graph.AddConstant("one", Tensor::Ints({1, 2}));
  const Value* two = graph.AddConstant("two", Tensor::Ints({1, 2}));
  const Value* other = graph.AddConstant("other", Tensor::Ints({1, 3}));
  const PersistentPlacements placed = PlacePersistent(graph);
  EXPECT_EQ(placed.FindState("b")->offset, 256u);
  EXPECT_EQ(placed.FindConstant(one)->offset, 768u);
  EXPECT_EQ(*placed.FindConstant(one), *placed.FindConstant(two));
  EXPECT_EQ(placed.FindConstant(other)->offset, 1024u);
  EXPECT_EQ(placed.bytes, 1280u);
  EXPECT_EQ(placed.FindState("c"), nullptr);
}

}  // namespace
}  // namespace onnxtrain
