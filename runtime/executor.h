// SPDX-License-Identifier: Apache-2.0
// Runs one graph on one rank by its plan: creates the kernels and events once, then Submit only enqueues.
//
// Borrows everything that several plans of a rank share: device, streams, regions, status word, communicator, Layout.
// All executors of a rank use the same streams, so that runs follow each other in the order of submission.
#ifndef ONNXTRAIN_RUNTIME_EXECUTOR_H_
#define ONNXTRAIN_RUNTIME_EXECUTOR_H_

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/execution_plan.h"
#include "runtime/step_times.h"

namespace onnxtrain {

// What an executor borrows; must outlive it.
struct RankResources {
  Device* device = nullptr;
  std::vector<Stream*> streams;  // by index of ExecutionPlan::streams; a plan with fewer uses the first ones
  // The persistent region in two pieces: the rank's states lie at [0, state_bytes), the constants of the program, which
  // ranks share and which differ between batch shapes, behind them.
  std::byte* states = nullptr;
  size_t state_bytes = 0;
  const std::byte* constants = nullptr;
  std::byte* transient = nullptr;        // the rank's transient region: the maximum over its plans
  uint64_t* status_word = nullptr;       // device memory
  Communicator* communicator = nullptr;  // null only when no graph has a collective
  const Layout* layout = nullptr;
  int rank = 0;
  int world_size = 1;
  int accumulation = 1;
  int threads = 1;  // OpenMP team of the compute stream
  uint64_t seed = 0;
  bool record = false;  // replay runs whole, where the device can record
};

class Executor {
 public:
  // Fails when a kernel is missing, refuses its types, or wants more workspace than the plan has. Graph and plan are
  // copied from as needed; the graph must outlive the executor.
  static StatusOr<std::unique_ptr<Executor>> Create(const Graph& graph, const ExecutionPlan& plan,
                                                    const RankResources& resources);
  ~Executor();

  // Enqueues one run. `feeds`: one host pointer per graph input; `fetches`: one per graph output, null where it is not
  // wanted. All stay valid until the run is done; fetches are filled when WaitFor returns. Allocates nothing. With
  // `times` (made for this plan) the streams stamp the start and end of every step but records and waits.
  void Submit(const RunContext& run, std::span<const std::byte* const> feeds, std::span<std::byte* const> fetches,
              StepTimes* times = nullptr);
  // Moves to another transient region; no run may be pending.
  Status Rebind(std::byte* transient);
  // Blocks until the `back`-th last submitted run is done (0: the last) and its fetches are filled. At most kDepth runs
  // are pending.
  void WaitFor(int back = 0);

  static constexpr int kDepth = 2;
  const Graph& graph() const { return graph_; }
  // Kernel of a node, for node-by-node runs (the search for the first non-finite value).
  Kernel& kernel(size_t node) { return *kernels_[node]; }
  const LaunchArgs& launch_args(size_t node) const { return launches_[node].args; }

 private:
  struct Launch {
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    LaunchArgs args;
  };

  // What crosses between host and device in one pending run, on a device that does not share memory with the host.
  struct Staging {
    std::vector<std::unique_ptr<Buffer>> feeds;    // by graph input
    std::vector<std::unique_ptr<Buffer>> fetches;  // by graph output
    std::vector<std::byte*> wanted;                // where the fetches of the pending run go; null: nowhere, or filled
  };

  Executor(const Graph& graph, const ExecutionPlan& plan, const RankResources& resources);
  Status CreateKernels();
  Status CreateEvents();
  Status CreateStaging();
  // Waits for the run of a slot and hands out its staged fetches.
  void Finish(size_t slot);
  void Stage(size_t slot, std::span<const std::byte* const> feeds, std::span<std::byte* const> fetches);
  void EnqueueAll(size_t slot, std::span<const std::byte* const> feeds, std::span<std::byte* const> fetches,
                  StepTimes* times);
  void Replay(size_t slot, std::span<const std::byte* const> feeds, std::span<std::byte* const> fetches);
  Status BindLaunches();
  std::byte* Address(const Placement& placement) const;
  void Enqueue(size_t index, size_t slot, std::span<const std::byte* const> feeds, std::span<std::byte* const> fetches);

  const Graph& graph_;
  ExecutionPlan plan_;
  RankResources resources_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // by node index
  std::vector<Launch> launches_;                  // by node index
  std::vector<std::unique_ptr<Event>> events_;
  std::array<std::unique_ptr<Event>, kDepth> done_;  // end of a run; slot = run number modulo kDepth
  std::array<RunContext, kDepth> runs_;
  std::array<Staging, kDepth> staging_;
  // By slot, whose staging it uses, and micro-batch, which kernels read when they are recorded.
  std::map<std::pair<size_t, int64_t>, std::unique_ptr<Recording>> recordings_;
  uint64_t submitted_ = 0;
};

// Scratch bytes of every node on the device, in graph order: what the memory planner asks before a plan exists. InvalidModel
// naming all operators at once that the device has no kernel for.
StatusOr<std::vector<size_t>> WorkspaceBytes(const Graph& graph, const RankResources& resources);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_EXECUTOR_H_
