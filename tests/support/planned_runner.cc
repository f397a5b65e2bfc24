// SPDX-License-Identifier: Apache-2.0
#include "tests/support/planned_runner.h"

#include <algorithm>

#include "runtime/persistent_placements.h"
#include "runtime/plan_verifier.h"
#include "runtime/scheduler.h"

namespace onnxtrain {

PlannedRunner::PlannedRunner(const Program& program)
    : program_(program),
      group_(program.world_size, std::chrono::minutes(1)),
      placements_(PlacePersistent(program)),
      outputs_(static_cast<size_t>(program.world_size)) {}

StatusOr<std::unique_ptr<PlannedRunner>> PlannedRunner::Create(const Program& program, const NamedTensors& initial) {
  std::unique_ptr<PlannedRunner> runner(new PlannedRunner(program));
  RETURN_IF_ERROR(runner->CreateTeam());
  RETURN_IF_ERROR(runner->PlanGraphs());
  for (const std::string& name : runner->states_->names()) {
    const auto found = initial.find(name);
    if (found != initial.end()) RETURN_IF_ERROR(runner->states_->Write(name, found->second));
  }
  return runner;
}

Status PlannedRunner::CreateTeam() {
  RankTeamOptions options;
  options.ranks = program_.world_size;
  options.accumulation = program_.accumulation;
  options.layout = &program_.layout();
  for (int rank = 0; rank < program_.world_size; ++rank) {
    options.devices.push_back(&device_);
    options.communicators.push_back(&group_.communicator(rank));
  }
  for (const auto& [name, placement] : placements_.states) {
    options.state_bytes = std::max(options.state_bytes, (placement.offset + placement.bytes + 255) / 256 * 256);
  }
  ASSIGN_OR_RETURN(team_, RankTeam::Create(options));
  states_ = std::make_unique<CanonicalStates>(program_, placements_, *team_);
  ASSIGN_OR_RETURN(constants_, team_->AddConstants(placements_));
  return OkStatus();
}

Status PlannedRunner::PlanGraphs() {
  std::vector<SessionPlan> together;
  for (const auto& [name, graph] : program_.graphs()) {
    ASSIGN_OR_RETURN(const std::vector<size_t> workspace, WorkspaceBytes(graph, team_->Resources(0, constants_)));
    ScheduleOptions schedule;
    schedule.persistent = &placements_;
    schedule.workspace_bytes = [&](const Node&, int index) { return workspace[static_cast<size_t>(index)]; };
    Planned& planned = planned_[name];
    planned.graph = &graph;
    ASSIGN_OR_RETURN(planned.plan, Schedule(graph, schedule));
    PlanVerifierOptions verify;
    verify.workspace_bytes = schedule.workspace_bytes;
    RETURN_IF_ERROR(VerifyPlan(graph, planned.plan, verify).Prepend("plan of " + name));
    together.push_back({&graph, &planned.plan});
  }
  RETURN_IF_ERROR(VerifySession(together).Prepend("plans of the program"));
  for (auto& [name, planned] : planned_) {
    ASSIGN_OR_RETURN(planned.index, team_->AddPlan(*planned.graph, planned.plan, constants_));
  }
  return OkStatus();
}

Status PlannedRunner::Run(const std::string& name, const FeedSource& feeds, int micro_batch) {
  const Planned& planned = planned_.at(name);
  std::vector<Tensor> fed;
  fed.reserve(outputs_.size() * planned.graph->inputs().size());
  std::vector<std::vector<const std::byte*>> inputs(outputs_.size());
  std::vector<std::vector<std::byte*>> fetches(outputs_.size());
  for (size_t rank = 0; rank < outputs_.size(); ++rank) {
    for (const Value* input : planned.graph->inputs()) {
      fed.push_back(feeds(*input, static_cast<int>(rank), micro_batch));
      inputs[rank].push_back(fed.back().data());
    }
    outputs_[rank].clear();
    for (const Value* output : planned.graph->outputs()) {
      Tensor& tensor = outputs_[rank].emplace(output->name(), Tensor(output->type())).first->second;
      fetches[rank].push_back(tensor.data());
    }
    team_->executor(planned.index, static_cast<int>(rank)).Submit({micro_batch}, inputs[rank], fetches[rank]);
  }
  return team_->Synchronize().Prepend("graph " + name);
}

Status PlannedRunner::Step(const FeedSource& feeds) {
  if (program_.accumulation == 1) return Run("step", feeds);
  RETURN_IF_ERROR(Run("first", feeds, 0));
  for (int m = 1; m + 1 < program_.accumulation; ++m) RETURN_IF_ERROR(Run("middle", feeds, m));
  return Run("last", feeds, program_.accumulation - 1);
}

Status PlannedRunner::Evaluate(const FeedSource& feeds) {
  if (program_.FindGraph("gather") != nullptr) RETURN_IF_ERROR(Run("gather", feeds));
  return Run("eval", feeds);
}

StatusOr<NamedTensors> PlannedRunner::CanonicalState() {
  NamedTensors state;
  for (const std::string& name : states_->names()) {
    ASSIGN_OR_RETURN(Tensor tensor, states_->Read(name));
    state.emplace(name, std::move(tensor));
  }
  return state;
}

}  // namespace onnxtrain
