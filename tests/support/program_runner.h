// SPDX-License-Identifier: Apache-2.0
// Runs a Program on world_size ranks in lock-step, on one thread, without plan or streams: the reference meaning that
// goldens and pipelines are held against. Each rank runs its graph node by node on the CPU kernels up to the next
// collective; there the runner itself combines the ranks' tensors in rank order. Ranks may run different graphs of the
// program as long as their collectives agree ("zero_step" beside "step").
//
// State is held per rank and seen from outside by canonical tensor (graph/program.h): whole, unsharded, without
// padding. Accumulators, pending states and replicas start as NaN, padding as zero; a padding that is not zero after a
// run is an error.
#ifndef ONNXTRAIN_TESTS_SUPPORT_PROGRAM_RUNNER_H_
#define ONNXTRAIN_TESTS_SUPPORT_PROGRAM_RUNNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/program.h"
#include "runtime/kernel.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {

// Feeds of one rank's run of one graph; the graph says which inputs there are.
using FeedSource = std::function<Tensor(const Value& input, int rank, int micro_batch)>;

class ProgramRunner {
 public:
  // The program is borrowed. `initial` by canonical name; what is missing comes from program.initial, else zero.
  static StatusOr<std::unique_ptr<ProgramRunner>> Create(const Program& program, const NamedTensors& initial);

  // Rank r runs the graph graphs[r]; graphs.size() is the world size. State updates are applied when all ranks have
  // ended.
  Status Run(const std::vector<std::string>& graphs, const FeedSource& feeds, int micro_batch = 0);
  // One training step: "step", or "first", "middle", ..., "last". Ranks that are `idle` run the zero_ graphs.
  Status Step(const FeedSource& feeds, const std::vector<bool>& idle = {});
  // "gather" where the program has it, then "eval".
  Status Evaluate(const FeedSource& feeds);

  // What a value of the last run's graph was on a rank.
  StatusOr<Tensor> ValueOf(int rank, std::string_view name) const;
  // Outputs of the last run on a rank.
  NamedTensors OutputsOf(int rank) const;
  // Every canonical tensor that a checkpoint would hold. Fails when ranks disagree on replicated state (buffers
  // excepted: rank 0's count) or when padding is not zero.
  StatusOr<NamedTensors> CanonicalState() const;

 private:
  struct Rank {
    std::map<std::string, Tensor> states;
    std::map<const Value*, Tensor> values;
    const Graph* graph = nullptr;
    std::vector<Node*> nodes;
    size_t next = 0;
    uint64_t status_word = 0;
  };

  explicit ProgramRunner(const Program& program) : program_(program), ranks_(static_cast<size_t>(program.world_size)) {}
  Status InitializeState(const NamedTensors& initial);
  Status StartRun(int rank, const std::string& graph, const FeedSource& feeds, int micro_batch);
  Status RunToCollective(int rank, int micro_batch);
  Status Launch(int rank, const Node& node, int index, int micro_batch);
  Status RunCollectives();
  Status ApplyUpdates();
  Status GatherSharded(const StateEntry& entry, NamedTensors& state) const;

  const Program& program_;
  std::vector<Rank> ranks_;
};

// Canonical tensors of the program by class, with values that depend on their names and the seed alone: weights in [-1,
// 1), statistics and second moments positive, counters 3. Program::initial wins.
NamedTensors SeededState(const Program& program, uint64_t seed);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_PROGRAM_RUNNER_H_
