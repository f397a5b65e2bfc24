// SPDX-License-Identifier: Apache-2.0
// The simulated NCCL, a stand-in for libnccl.so.2 whose ranks are threads of one process. Collectives meet in host
// functions on the callers' streams, so whatever runs those, eagerly or from a graph, runs the collectives. It keeps
// NCCL's documented rules and refuses what breaks them, with a text from ncclGetLastError; what would hang or mix data
// there is an error here. Knows non-blocking communicators only.
#ifndef ONNXTRAIN_TESTS_SIMULATED_CUDA_NCCL_STATE_H_
#define ONNXTRAIN_TESTS_SIMULATED_CUDA_NCCL_STATE_H_

#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace simulated_nccl {

enum class Kind { kAllReduce, kReduceScatter, kAllGather, kBroadcast };

struct Call {
  Kind kind = Kind::kAllReduce;
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;  // of the send or receive argument, as in nccl.h
  ncclDataType_t type = ncclFloat32;
  int detail = 0;  // ncclRedOp_t or root
  bool in_place = false;
  bool captured = false;

  // Whether two ranks may bring these to one collective.
  bool Matches(const Call& other) const;
  std::string ToString() const;
};

const char* NameOf(Kind kind);
size_t SizeOf(ncclDataType_t type);  // 0: not simulated
// Empty, or what is wrong with the call's arguments on this rank; sets in_place.
std::string CheckArguments(Call& call, int rank, int ranks);
// Moves the data of one collective; calls[r] is rank r's.
void Compute(const std::vector<const Call*>& calls);

struct Meeting {
  std::vector<const Call*> calls;
  int here = 0;
  int left = 0;
  bool done = false;
};

// What the n-th call of the first rank to issue it looked like.
struct Issued {
  Call call;
  int rank = 0;
  int seen = 0;
};

// The ranks of one ncclUniqueId. `mutex` guards it and the members' fields.
struct Clique {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<ncclComm*> members;  // by rank; null until joined
  int finalized = 0;
  std::map<uint64_t, Issued> issued;     // by number of issue
  std::map<uint64_t, Meeting> meetings;  // by number of execution
  std::string failure;                   // of all ranks: nothing runs any more

  int size() const { return static_cast<int>(members.size()); }
  bool Complete() const;
  // Every rank's asynchronous error from now on, unless there is one.
  void Fail(const std::string& text);
};

enum class State { kGrouped, kJoined, kFinalizing, kDestroyed, kAborted };

// One collective of one rank on its stream; runs again with each replay of a graph.
struct Operation {
  ncclComm* communicator = nullptr;
  Call call;
};
// The host function of an Operation.
void Run(void* operation);

struct Counters {
  std::atomic<int64_t> calls = 0;
  std::atomic<int64_t> collectives = 0;  // issued, captured ones included
  std::atomic<int64_t> captured_collectives = 0;
  std::atomic<int64_t> executed_collectives = 0;
  std::atomic<int64_t> bytes = 0;  // sent, by count and type
  std::atomic<int64_t> groups = 0;
  std::atomic<int64_t> aborts = 0;
  std::atomic<int64_t> live_communicators = 0;
  std::atomic<int64_t> open_groups = 0;  // threads that ended inside a group
};
Counters& counters();

// What tests planted for a rank.
struct Faults {
  std::atomic<int64_t> calls_until_failure = -1;
  std::atomic<int> dropped_rank = -1;
  std::atomic<int> delayed_rank = -1;
  std::atomic<int> delay_milliseconds = 0;
  std::atomic<int> swallowed_group_ends = 0;
  std::atomic<int> abort_milliseconds = 0;
};
Faults& faults();
// Counts a call; whether it is the one that was planted to fail.
bool PlantedFailure();

}  // namespace simulated_nccl

// Never freed: use after destruction is noticed.
struct ncclComm {
  simulated_nccl::Clique* clique = nullptr;
  int rank = 0;
  int device = 0;
  simulated_nccl::State state = simulated_nccl::State::kGrouped;
  int connecting = 0;  // the first collective is in progress for so many more looks at the asynchronous error
  uint64_t issued = 0;
  uint64_t executed = 0;
  int pending = 0;  // eager operations that have not run to their end
  int running = 0;  // of its operations, inside Run
  std::vector<std::unique_ptr<simulated_nccl::Operation>> captured;
};

#endif  // ONNXTRAIN_TESTS_SIMULATED_CUDA_NCCL_STATE_H_
