// SPDX-License-Identifier: Apache-2.0
// Runs a Program as a session does: every graph scheduled, its plan proved, and carried out by ranks as threads over
// shared buckets on the CPU device. The twin of ProgramRunner, against which it is held.
#ifndef ONNXTRAIN_TESTS_SUPPORT_PLANNED_RUNNER_H_
#define ONNXTRAIN_TESTS_SUPPORT_PLANNED_RUNNER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/canonical_states.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/local_communicator.h"
#include "runtime/rank_team.h"
#include "tests/support/program_runner.h"

namespace onnxtrain {

class PlannedRunner {
 public:
  // The program is borrowed. Plans and proves all its graphs, each and all pairs of them.
  static StatusOr<std::unique_ptr<PlannedRunner>> Create(const Program& program, const NamedTensors& initial);

  // As in ProgramRunner.
  Status Run(const std::string& graph, const FeedSource& feeds, int micro_batch = 0);
  Status Step(const FeedSource& feeds);
  Status Evaluate(const FeedSource& feeds);
  const NamedTensors& OutputsOf(int rank) const { return outputs_[static_cast<size_t>(rank)]; }
  StatusOr<NamedTensors> CanonicalState();

 private:
  struct Planned {
    const Graph* graph = nullptr;
    ExecutionPlan plan;
    int index = 0;  // in the team
  };

  explicit PlannedRunner(const Program& program);
  Status CreateTeam();
  Status PlanGraphs();

  const Program& program_;
  CpuDevice device_;
  LocalGroup group_;
  PersistentPlacements placements_;
  std::unique_ptr<RankTeam> team_;
  std::unique_ptr<CanonicalStates> states_;
  int constants_ = 0;
  std::map<std::string, Planned> planned_;
  std::vector<NamedTensors> outputs_;  // by rank, of the last run
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_PLANNED_RUNNER_H_
