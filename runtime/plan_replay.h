// SPDX-License-Identifier: Apache-2.0
// Replays one plan on the verifier's model of memory and streams (plan_verifier.h). Several plans may be replayed one
// after the other on one model, as a session runs them.
#ifndef ONNXTRAIN_RUNTIME_PLAN_REPLAY_H_
#define ONNXTRAIN_RUNTIME_PLAN_REPLAY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/byte_ledger.h"
#include "runtime/expected_content.h"
#include "runtime/plan_verifier.h"

namespace onnxtrain {

// What outlives a run: memory and the clocks of the streams.
struct ReplayState {
  ByteLedger regions[2];  // by Region
  std::array<VectorClock, kLedgerStreams> clocks = {};
  std::array<int, kLedgerStreams> counts = {};  // tasks issued on each stream
};

// Where violations go; repeats of the same sentence are dropped.
class Violations {
 public:
  void Add(const std::string& sentence);
  const std::vector<std::string>& sentences() const { return sentences_; }

 private:
  std::vector<std::string> sentences_;
};

class PlanReplay {
 public:
  // Names any task of any plan of the session by its label.
  using Namer = std::function<std::string(int64_t label)>;

  // Borrows all. `number` tells the plans of a session apart.
  PlanReplay(const SessionPlan& subject, int number, const Namer& namer, Violations& violations);

  // Everything that needs no replay: indices, sizes, bounds, budget, every node once, order of collectives. False when
  // the plan is too broken to be replayed.
  bool CheckForm(const PlanVerifierOptions& options);
  void Run(ReplayState& state);

  std::string Name(int64_t label) const;  // of one of its own steps
  static int PlanOf(int64_t label) { return static_cast<int>(label >> 32); }

 private:
  const Node& node(int index) const { return *nodes_[static_cast<size_t>(index)]; }
  int64_t LabelOf(size_t step) const { return static_cast<int64_t>(number_) << 32 | static_cast<int64_t>(step); }
  std::string NameOfStep(size_t step) const;
  void Complain(const std::string& sentence) { violations_.Add("plan of graph '" + graph_.name() + "': " + sentence); }
  bool CheckPlaces();
  bool CheckSteps();
  bool CheckStep(size_t index, std::vector<bool>& recorded);
  bool CheckRange(const std::string& what, const Placement& range);
  void CheckCollectives();
  void CheckWorkspaces(const PlanVerifierOptions& options);

  void Begin();
  void RunStep(size_t index);
  void RunLaunch(int node);
  void CheckOverlaps(const std::vector<LaunchRange>& reads, const std::vector<LaunchRange>& writes, int node);
  void End();

  void StartTask(int stream, int64_t label);
  void Read(const Value& value, const Placement& place);
  void Write(const std::string& what, const Placement& range, Content content);
  void Copy(const Placement& from, const Placement& to);
  ByteLedger& LedgerOf(Region region) { return state_->regions[static_cast<size_t>(region)]; }
  ByteLedger::Complaint ComplaintOf(const std::string& what, Region region);
  int64_t SourceOf(const Value* value) const {
    return static_cast<int64_t>(number_) << 32 | expected_->SourceOf(value);
  }
  std::vector<Content> ExpectedOf(const Value* value) const;

  const Graph& graph_;
  const ExecutionPlan& plan_;
  const int number_;
  const Namer& namer_;
  Violations& violations_;
  std::vector<const Node*> nodes_;
  std::unique_ptr<ExpectedContent> expected_;

  // Of the run in progress.
  ReplayState* state_ = nullptr;
  std::vector<VectorClock> events_;
  int begin_ = 0;  // count of stream 0 at the beginning of the run
  Toucher task_;
  VectorClock clock_ = {};
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_PLAN_REPLAY_H_
