// SPDX-License-Identifier: Apache-2.0
// The ranks of this process: for each its streams, its states, its transient region, its status word and its executors.
// One host thread submits for all of them; what the ranks do side by side happens on their streams.
#ifndef ONNXTRAIN_RUNTIME_RANK_TEAM_H_
#define ONNXTRAIN_RUNTIME_RANK_TEAM_H_

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/device.h"
#include "runtime/execution_plan.h"
#include "runtime/executor.h"

namespace onnxtrain {

struct RankTeamOptions {
  int ranks = 1;
  int threads_per_rank = 1;
  int accumulation = 1;
  uint64_t seed = 0;
  bool overlap = true;                       // false: one stream
  bool record = false;                       // RankResources::record
  size_t state_bytes = 0;                    // per rank
  const Layout* layout = nullptr;            // outlives the team
  std::vector<Device*> devices;              // one per rank, borrowed; several ranks may share one
  std::vector<Communicator*> communicators;  // one per rank, borrowed
};

class RankTeam {
 public:
  static StatusOr<std::unique_ptr<RankTeam>> Create(const RankTeamOptions& options);
  ~RankTeam();

  // The constants of one program in the memory of every device, shared by its ranks and by plans. Returns its index.
  StatusOr<int> AddConstants(const PersistentPlacements& placements);
  // Executors of a plan on every rank; grows the transient regions to the largest plan. Returns the plan's index. The
  // graph outlives the team. Waits for pending runs.
  StatusOr<int> AddPlan(const Graph& graph, const ExecutionPlan& plan, int constants);

  Executor& executor(int plan, int rank) { return *plans_[static_cast<size_t>(plan)][static_cast<size_t>(rank)]; }
  // Blocks until all ranks are done; the first error of the lowest rank.
  Status Synchronize();
  // One rank's states; call Synchronize first.
  Status ReadState(int rank, const Placement& placement, void* host) const;
  Status WriteState(int rank, const Placement& placement, const void* host);
  // After a step that a kernel refused; call Synchronize first.
  Status ClearStatusWords();
  int size() const { return static_cast<int>(ranks_.size()); }
  Device& device(int rank) const { return *options_.devices[static_cast<size_t>(rank)]; }
  size_t transient_bytes() const { return transient_bytes_; }
  RankResources Resources(int rank, int constants) const;

 private:
  struct Rank {
    std::vector<std::unique_ptr<Stream>> streams;
    std::unique_ptr<Buffer> states;
    std::unique_ptr<Buffer> transient;
    std::unique_ptr<Buffer> status_word;
  };

  explicit RankTeam(const RankTeamOptions& options) : options_(options) {}
  StatusOr<Rank> CreateRank(int rank);
  Status GrowTransient(size_t bytes);
  // Releases the ranks that wait for one that failed; called on a stream's thread.
  void Abort(int rank, const Status& status);

  const RankTeamOptions options_;
  std::vector<Rank> ranks_;
  std::vector<std::map<Device*, std::unique_ptr<Buffer>>> constants_;  // by program, then by device
  size_t transient_bytes_ = 0;
  std::vector<std::vector<std::unique_ptr<Executor>>> plans_;  // destroyed before what they borrow
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_RANK_TEAM_H_
