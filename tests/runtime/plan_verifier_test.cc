// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/persistent_placements.h"
#include "runtime/scheduler.h"
#include "tests/support/plan_mutations.h"
#include "tests/support/random_graph.h"

namespace onnxtrain {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kGraphs = 200;

size_t SomeWorkspace(const Node&, int index) { return index % 3 == 0 ? static_cast<size_t>(index) * 40 : 0; }

struct Case {
  explicit Case(uint64_t seed) : graph(MakeRandomGraph(seed, SyntheticRegistry())), persistent(PlacePersistent(graph)) {
    options.persistent = &persistent;
    options.overlap = seed % 8 != 7;
    options.buckets_in_flight = static_cast<int>(seed % 4);
    if (seed % 2 == 0) options.workspace_bytes = SomeWorkspace;
    StatusOr<ExecutionPlan> made = Schedule(graph, options);
    CHECK_WITH(made.ok(), made.status().message());
    plan = *std::move(made);
    verify.workspace_bytes = options.workspace_bytes;
  }
  Graph graph;
  PersistentPlacements persistent;
  ScheduleOptions options;
  PlanVerifierOptions verify;
  ExecutionPlan plan;
};

TEST(PlanVerifier, AcceptsEveryPlanOfRandomGraphs) {
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Case one(seed);
    EXPECT_THAT(FindViolations(one.graph, one.plan, one.verify), IsEmpty()) << "seed " << seed << "\n"
                                                                            << ToString(one.plan, one.graph);
  }
}

// Every kind of broken plan, over all graphs: none may pass, and each kind must have occurred.
void ExpectAllCaught(const std::function<std::vector<BrokenPlan>(const Case&)>& breaker, int at_least) {
  int tried = 0;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Case one(seed);
    for (const BrokenPlan& broken : breaker(one)) {
      ++tried;
      ASSERT_FALSE(FindViolations(one.graph, broken.plan, one.verify).empty())
          << "seed " << seed << ": " << broken.what << " was not caught in\n"
          << ToString(one.plan, one.graph);
    }
  }
  EXPECT_GE(tried, at_least);
}

TEST(PlanVerifier, CatchesEveryDeletedWait) {
  ExpectAllCaught([](const Case& one) { return WithoutEachWait(one.plan); }, 1000);
}

TEST(PlanVerifier, CatchesEveryDroppedZeroFill) {
  ExpectAllCaught([](const Case& one) { return WithoutEachZeroFill(one.plan); }, 500);
}

TEST(PlanVerifier, CatchesEverySwappedPairOfDependentLaunches) {
  ExpectAllCaught([](const Case& one) { return WithSwappedLaunches(one.plan, one.graph); }, 1000);
}

TEST(PlanVerifier, CatchesEveryOverlapOfLiveValues) {
  ExpectAllCaught([](const Case& one) { return WithOverlaps(one.plan, one.graph); }, 1000);
}

TEST(PlanVerifier, CatchesEveryLostUpdate) {
  ExpectAllCaught([](const Case& one) { return WithLostUpdates(one.plan, one.graph); }, 200);
}

TEST(PlanVerifier, CatchesAWorkspaceThatIsTooSmall) {
  Case one(0);
  one.verify.workspace_bytes = [](const Node&, int) { return size_t{1} << 20; };
  const Status status = VerifyPlan(one.graph, one.plan, one.verify);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("its kernel uses 1048576"));
}

TEST(PlanVerifier, HoldsTheBudget) {
  Case one(0);
  one.verify.memory_limit = one.plan.persistent_bytes + one.plan.transient_bytes;
  EXPECT_TRUE(VerifyPlan(one.graph, one.plan, one.verify).ok());
  one.verify.memory_limit -= 1;
  EXPECT_THAT(VerifyPlan(one.graph, one.plan, one.verify).message(), HasSubstr("the memory limit is"));
}

TEST(PlanVerifier, RefusesCollectivesOutOfOrder) {
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Case one(seed);
    std::vector<const Node*> nodes;
    for (const std::unique_ptr<Node>& node : one.graph.nodes()) nodes.push_back(node.get());
    ExecutionPlan swapped = one.plan;
    PlanStep* earlier = nullptr;
    for (PlanStep& step : swapped.steps) {
      if (step.kind != StepKind::kLaunch || !nodes[static_cast<size_t>(step.node)]->def().collective) continue;
      if (earlier != nullptr) std::swap(*earlier, step);
      earlier = &step;
    }
    if (swapped.steps.size() == 0 || earlier == nullptr) continue;
    const std::vector<std::string> found = FindViolations(one.graph, swapped, one.verify);
    if (ToString(swapped, one.graph) != ToString(one.plan, one.graph)) {
      EXPECT_THAT(found, testing::Contains(HasSubstr("different orders"))) << seed;
    }
  }
}

// Plans of one session: other graphs over the same states may follow each other in any order.
TEST(PlanVerifier, ProvesEveryPairOfPlansOfASession) {
  Program program;
  Graph step = MakeSyntheticStep({});
  for (const Value* state : step.states()) {
    StateEntry entry;
    entry.name = state->name();
    entry.type = state->type();
    program.AddState(std::move(entry));
  }
  Graph eval(SyntheticRegistry(), "eval");
  Value* replica = eval.AddState("replica0", step.FindValue("replica0")->type());
  StatusOr<Node*> square = eval.Insert(nullptr, {"Mul", {replica, replica}, {}, {"y"}, "", {}});
  ASSERT_TRUE(square.ok());
  eval.AddOutput((*square)->output(0));
  program.AddGraph(std::move(step));
  program.AddGraph(std::move(eval));
  const PersistentPlacements persistent = PlacePersistent(program);
  ScheduleOptions options;
  options.persistent = &persistent;
  std::vector<ExecutionPlan> plans;
  std::vector<SessionPlan> session;
  plans.reserve(2);
  for (const auto& [name, graph] : program.graphs()) {
    StatusOr<ExecutionPlan> plan = Schedule(graph, options);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    plans.push_back(*std::move(plan));
    session.push_back({&graph, &plans.back()});
  }
  EXPECT_THAT(FindSessionViolations(session), IsEmpty());

  // A plan that has another idea of where a state lies.
  for (PlacedValue& placed : plans[0].placements) {
    if (placed.value->kind() == ValueKind::kState) placed.placement.offset += 256;
  }
  plans[0].persistent_bytes += 256;
  EXPECT_THAT(FindSessionViolations(session), testing::Contains(HasSubstr("has another place in an earlier plan")));
}

}  // namespace
}  // namespace onnxtrain
