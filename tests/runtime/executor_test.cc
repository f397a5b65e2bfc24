// SPDX-License-Identifier: Apache-2.0
// Plans carried out: equal bits whatever the relative speed of the streams, against the graph run node by node.
#include "runtime/executor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/local_communicator.h"
#include "runtime/persistent_placements.h"
#include "runtime/plan_verifier.h"
#include "runtime/rank_team.h"
#include "runtime/scheduler.h"
#include "tests/support/interleaved_device.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

constexpr int kRuns = 3;

using Tensors = std::map<std::string, Tensor>;

struct PlannedGraph {
  PersistentPlacements persistent;
  ExecutionPlan plan;
};

PlannedGraph Plan(Device& device, const Graph& graph) {
  PlannedGraph planned;
  planned.persistent = PlacePersistent(graph);
  ScheduleOptions options;
  options.persistent = &planned.persistent;
  RankResources resources;
  resources.device = &device;
  const StatusOr<std::vector<size_t>> workspace = WorkspaceBytes(graph, resources);
  EXPECT_TRUE(workspace.ok()) << workspace.status().message();
  options.workspace_bytes = [&](const Node&, int index) { return (*workspace)[static_cast<size_t>(index)]; };
  StatusOr<ExecutionPlan> plan = Schedule(graph, options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  planned.plan = *std::move(plan);
  PlanVerifierOptions verify;
  verify.workspace_bytes = options.workspace_bytes;
  const Status verified = VerifyPlan(graph, planned.plan, verify);
  EXPECT_TRUE(verified.ok()) << verified.message();
  return planned;
}

// Outputs of the last run and the states after it.
Tensors RunPlan(Device& device, const Graph& graph, const PlannedGraph& planned, const Tensors& start) {
  LocalGroup group(1, std::chrono::minutes(1));
  RankTeamOptions options;
  options.devices = {&device};
  options.communicators = {&group.communicator(0)};
  options.state_bytes = planned.persistent.constants.empty() ? planned.persistent.bytes
                                                             : planned.persistent.constants.front().second.offset;
  std::unique_ptr<RankTeam> team = *RankTeam::Create(options);
  const int constants = *team->AddConstants(planned.persistent);
  StatusOr<int> index = team->AddPlan(graph, planned.plan, constants);
  EXPECT_TRUE(index.ok()) << index.status().message();
  for (const Value* state : graph.states()) {
    EXPECT_TRUE(team->WriteState(0, *planned.persistent.FindState(state->name()), start.at(state->name()).data()).ok());
  }
  std::vector<const std::byte*> feeds;
  for (const Value* input : graph.inputs()) feeds.push_back(start.at(input->name()).data());
  Tensors result;
  std::vector<std::byte*> fetches;
  for (const Value* output : graph.outputs()) {
    fetches.push_back((result["output " + output->name()] = Tensor(output->type())).data());
  }
  for (int run = 0; run < kRuns; ++run) team->executor(*index, 0).Submit({}, feeds, fetches);
  const Status done = team->Synchronize();
  EXPECT_TRUE(done.ok()) << done.message();
  for (const Value* state : graph.states()) {
    Tensor tensor(state->type());
    EXPECT_TRUE(team->ReadState(0, *planned.persistent.FindState(state->name()), tensor.data()).ok());
    result["state " + state->name()] = std::move(tensor);
  }
  return result;
}

void ExpectSameBits(const Tensors& found, const Tensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(found.at(name).Identical(tensor)) << name;
  }
}

TEST(ExecutorTest, EveryInterleavingGivesTheSameBits) {
  CpuDevice cpu;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("graph seed " + std::to_string(seed));
    RandomGraphOptions options;
    options.world_size = 1;
    const Graph graph = MakeRandomGraph(seed, SyntheticRegistry(), options);
    const PlannedGraph planned = Plan(cpu, graph);
    const Tensors start = MakeRandomTensors(graph, seed);
    const Tensors expected = RunPlan(cpu, graph, planned, start);
    for (uint64_t interleaving = 0; interleaving < 20; ++interleaving) {
      SCOPED_TRACE("interleaving seed " + std::to_string(interleaving));
      const std::unique_ptr<Device> device = MakeInterleavedDevice(cpu, seed * 1000 + interleaving);
      ExpectSameBits(RunPlan(*device, graph, planned, start), expected);
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace onnxtrain
