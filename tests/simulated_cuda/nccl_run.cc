// SPDX-License-Identifier: Apache-2.0
// Where the ranks' collectives meet: inside host functions of their streams.
#include <cstdio>
#include <cstdlib>

#include "tests/simulated_cuda/nccl_state.h"

namespace simulated_nccl {
namespace {

bool Ended(const ncclComm& communicator) {
  return communicator.state == State::kAborted || !communicator.clique->failure.empty();
}

// Replays of different graphs meet in the order of execution, which may differ from the order of capture.
void CompareAndCompute(Clique& clique, const Meeting& meeting, uint64_t number) {
  for (size_t r = 1; r < meeting.calls.size(); ++r) {
    if (meeting.calls[r]->Matches(*meeting.calls[0])) continue;
    clique.Fail("ranks execute different collectives as number " + std::to_string(number) + ": rank 0 " +
                meeting.calls[0]->ToString() + ", rank " + std::to_string(r) + " " + meeting.calls[r]->ToString());
    return;
  }
  Compute(meeting.calls);
  ++counters().executed_collectives;
}

void Meet(std::unique_lock<std::mutex>& lock, ncclComm& self, const Call& call) {
  Clique& clique = *self.clique;
  const uint64_t number = ++self.executed;
  if (self.rank == faults().delayed_rank) {
    clique.changed.wait_for(lock, std::chrono::milliseconds(faults().delay_milliseconds), [&] { return Ended(self); });
  }
  if (self.rank == faults().dropped_rank) clique.changed.wait(lock, [&] { return Ended(self); });
  if (Ended(self)) return;
  Meeting& meeting = clique.meetings[number];
  meeting.calls.resize(clique.members.size());
  meeting.calls[static_cast<size_t>(self.rank)] = &call;
  if (++meeting.here == clique.size()) {
    CompareAndCompute(clique, meeting, number);
    meeting.done = true;
    clique.changed.notify_all();
  }
  clique.changed.wait(lock, [&] { return meeting.done || Ended(self); });
  if (!meeting.done) {  // the others must not find this call any more
    --meeting.here;
    return;
  }
  if (++meeting.left == clique.size()) clique.meetings.erase(number);
}

}  // namespace

bool Clique::Complete() const {
  for (const ncclComm* member : members) {
    if (member == nullptr || member->state == State::kGrouped) return false;
  }
  return true;
}

void Clique::Fail(const std::string& text) {
  if (!failure.empty()) return;
  failure = text;
  changed.notify_all();
}

void Run(void* pointer) {
  auto* operation = static_cast<Operation*>(pointer);
  ncclComm& self = *operation->communicator;
  std::unique_lock<std::mutex> lock(self.clique->mutex);
  if (self.state == State::kDestroyed) {
    std::fprintf(stderr, "simulated NCCL: %s of rank %d runs after ncclCommDestroy; destroy graphs first\n",
                 operation->call.ToString().c_str(), self.rank);
    std::abort();
  }
  ++self.running;
  Meet(lock, self, operation->call);
  --self.running;
  if (!operation->call.captured) {
    --self.pending;
    delete operation;
  }
  self.clique->changed.notify_all();
}

}  // namespace simulated_nccl
