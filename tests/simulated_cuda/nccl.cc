// SPDX-License-Identifier: Apache-2.0
// The functions of libnccl.so.2 that onnx-train calls.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <set>
#include <thread>

#include "tests/simulated_cuda/nccl_state.h"

// Absent where the CUDA runtime at hand does not capture.
extern "C" cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus*) __attribute__((weak));

namespace simulated_nccl {
namespace {

using Id = std::array<char, NCCL_UNIQUE_ID_BYTES>;

// All cliques and communicators ever made.
struct World {
  std::mutex mutex;
  std::map<Id, std::unique_ptr<Clique>> cliques;
  std::set<const ncclComm*> communicators;
  int64_t ids = 0;
};
World& world() {
  static World& all = *new World;
  return all;
}

thread_local std::string thread_error;

struct Group {
  int depth = 0;
  bool joins = false;
  bool communicates = false;
  std::vector<std::function<ncclResult_t()>> calls;
  ~Group() {
    if (depth == 0) return;
    ++counters().open_groups;
    std::fprintf(stderr, "simulated NCCL: a thread ended inside a group: ncclGroupEnd is missing\n");
  }
};
thread_local Group group;

ncclResult_t Refuse(ncclResult_t result, const std::string& text) {
  thread_error = text;
  return result;
}

// Threads inside a call, by device: NCCL allows one.
std::atomic<int>& ThreadsInside(int device) {
  static std::array<std::atomic<int>, 64> inside{};
  return inside[static_cast<size_t>(device)];
}

// A call with a communicator: counts it, checks the handle, and holds device and clique for the calling thread.
class Entry {
 public:
  Entry(const char* name, ncclComm* communicator) {
    {
      const std::lock_guard<std::mutex> lock(world().mutex);
      if (world().communicators.count(communicator) == 0) {
        result_ = Refuse(ncclInvalidArgument, std::string(name) + ": not a communicator");
        return;
      }
    }
    const std::string where = std::string(name) + " of rank " + std::to_string(communicator->rank);
    inside_ = &ThreadsInside(communicator->device);
    if (inside_->fetch_add(1) != 0) {
      result_ = Refuse(ncclInvalidUsage,
                       where + ": another thread is inside NCCL for device " + std::to_string(communicator->device));
      return;
    }
    lock_ = std::unique_lock<std::mutex>(communicator->clique->mutex);
    if (communicator->state == State::kDestroyed || communicator->state == State::kAborted) {
      const bool destroyed = communicator->state == State::kDestroyed;
      result_ = Refuse(ncclInvalidUsage, where + ": used after ncclComm" + (destroyed ? "Destroy" : "Abort"));
    } else if (PlantedFailure()) {
      planted_ = true;
      result_ = Refuse(ncclSystemError, where + ": planted failure");
    }
  }
  ~Entry() {
    if (inside_ != nullptr) --*inside_;
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  bool refused() const { return result_ != ncclSuccess; }
  bool planted() const { return planted_; }
  ncclResult_t result() const { return result_; }
  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  std::atomic<int>* inside_ = nullptr;
  std::unique_lock<std::mutex> lock_;
  bool planted_ = false;
  ncclResult_t result_ = ncclSuccess;
};

bool IsCapturing(cudaStream_t stream) {
  if (cudaStreamIsCapturing == nullptr) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status != cudaStreamCaptureStatusNone;
}

// Compares with what other ranks issued as the same number.
bool InOrder(ncclComm& self, const Call& call) {
  Clique& clique = *self.clique;
  const uint64_t number = ++self.issued;
  const auto [at, first] = clique.issued.try_emplace(number, Issued{call, self.rank, 0});
  const Issued& issued = at->second;
  if (!first && !call.Matches(issued.call)) {
    clique.Fail("ranks issue different collectives as number " + std::to_string(number) + ": rank " +
                std::to_string(issued.rank) + " " + issued.call.ToString() + ", rank " + std::to_string(self.rank) +
                " " + call.ToString());
    return false;
  }
  if (++at->second.seen == clique.size()) clique.issued.erase(at);
  return true;
}

// Called with the clique locked; unlocks it, since a stream may run the host function at once.
ncclResult_t Enqueue(std::unique_lock<std::mutex>& lock, ncclComm& self, const Call& call, cudaStream_t stream) {
  auto operation = std::make_unique<Operation>(Operation{&self, call});
  Operation* const raw = operation.get();
  ++counters().collectives;
  counters().bytes += static_cast<int64_t>(call.count * SizeOf(call.type));
  if (call.captured) {
    ++counters().captured_collectives;
    self.captured.push_back(std::move(operation));
  } else {
    ++self.pending;
    (void)operation.release();  // Run deletes it
  }
  const bool first = self.issued == 1;
  if (first) self.connecting = 2;
  lock.unlock();
  if (cudaLaunchHostFunc(stream, Run, raw) != cudaSuccess) {
    if (!call.captured) delete raw;
    return Refuse(ncclUnhandledCudaError, "cudaLaunchHostFunc");
  }
  return first ? ncclInProgress : ncclSuccess;
}

ncclResult_t IssueNow(ncclComm* self, Call call, cudaStream_t stream) {
  Entry entry(NameOf(call.kind), self);
  if (entry.refused()) return entry.result();
  const std::string where = std::string(NameOf(call.kind)) + " of rank " + std::to_string(self->rank) + ": ";
  Clique& clique = *self->clique;
  if (!clique.failure.empty()) return Refuse(ncclInvalidUsage, clique.failure);
  if (self->state != State::kJoined || !clique.Complete()) {
    return Refuse(ncclInvalidUsage, where + "not all ranks have joined, or this one has left");
  }
  if (self->connecting > 0) return Refuse(ncclInvalidUsage, where + "the call before is still in progress");
  const std::string wrong = CheckArguments(call, self->rank, clique.size());
  if (!wrong.empty()) return Refuse(ncclInvalidArgument, where + wrong);
  call.captured = IsCapturing(stream);
  if (!InOrder(*self, call)) return Refuse(ncclInvalidUsage, clique.failure);
  return Enqueue(entry.lock(), *self, call, stream);
}

ncclResult_t Issue(ncclComm* self, const Call& call, cudaStream_t stream) {
  if (group.depth == 0) return IssueNow(self, call, stream);
  group.communicates = true;
  group.calls.push_back([=] { return IssueNow(self, call, stream); });
  return ncclSuccess;
}

ncclResult_t Join(ncclComm* self) {
  Clique& clique = *self->clique;
  const std::lock_guard<std::mutex> lock(clique.mutex);
  ncclComm*& place = clique.members[static_cast<size_t>(self->rank)];
  if (place != nullptr) clique.Fail("rank " + std::to_string(self->rank) + " joins twice");
  for (const ncclComm* other : clique.members) {
    if (other == nullptr || other->device != self->device) continue;
    clique.Fail("Duplicate GPU detected: ranks " + std::to_string(other->rank) + " and " + std::to_string(self->rank) +
                " both on device " + std::to_string(self->device));
  }
  place = self;
  self->state = State::kJoined;
  return ncclSuccess;
}

ncclResult_t EndGroup() {
  if (group.depth == 0) return Refuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return ncclSuccess;
  ++counters().groups;
  const std::vector<std::function<ncclResult_t()>> calls = std::move(group.calls);
  group.calls.clear();
  const bool mixed = group.joins && group.communicates;
  group.joins = group.communicates = false;
  if (mixed) return Refuse(ncclInvalidUsage, "a group holds both ncclCommInitRankConfig and collectives");
  ncclResult_t first = ncclSuccess;
  for (const auto& call : calls) {
    const ncclResult_t result = call();
    if (first == ncclSuccess) first = result;
  }
  return first;
}

// What a communicator that is neither destroyed nor aborted is doing.
ncclResult_t Progress(const ncclComm& self) {
  const Clique& clique = *self.clique;
  if (!clique.failure.empty()) return ncclInvalidUsage;
  if (!clique.Complete()) return ncclInProgress;
  if (self.state != State::kFinalizing) return ncclSuccess;
  return clique.finalized == clique.size() && self.pending == 0 ? ncclSuccess : ncclInProgress;
}

}  // namespace

}  // namespace simulated_nccl

using namespace simulated_nccl;  // NOLINT: the library's own names

#pragma GCC visibility push(default)
extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (PlantedFailure()) return Refuse(ncclSystemError, "ncclGetUniqueId: planted failure");
  const std::lock_guard<std::mutex> lock(world().mutex);
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->internal, sizeof(id->internal), "simulated NCCL %lld", static_cast<long long>(++world().ids));
  Id key;
  std::memcpy(key.data(), id->internal, key.size());
  world().cliques[key] = std::make_unique<Clique>();
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const std::string where = "ncclCommInitRankConfig of rank " + std::to_string(rank) + ": ";
  if (PlantedFailure()) return Refuse(ncclSystemError, where + "planted failure");
  if (config == nullptr || config->magic != 0xcafebeef || config->blocking != 0) {
    return Refuse(ncclInvalidUsage, where + "the simulation needs a config with blocking = 0");
  }
  if (ranks < 1 || rank < 0 || rank >= ranks) return Refuse(ncclInvalidArgument, where + "no such rank");
  auto owned = std::make_unique<ncclComm>();
  ncclComm* const self = owned.get();
  self->rank = rank;
  if (cudaGetDevice(&self->device) != cudaSuccess) return Refuse(ncclUnhandledCudaError, where + "no device");
  Id key;
  std::memcpy(key.data(), id.internal, key.size());
  {
    const std::lock_guard<std::mutex> lock(world().mutex);
    const auto found = world().cliques.find(key);
    if (found == world().cliques.end()) return Refuse(ncclRemoteError, where + "an id of another process");
    self->clique = found->second.get();
    world().communicators.insert(owned.release());
    const std::lock_guard<std::mutex> clique_lock(self->clique->mutex);
    if (self->clique->members.empty()) self->clique->members.resize(static_cast<size_t>(ranks));
    if (self->clique->size() != ranks) self->clique->Fail(where + "ranks disagree about the size of the world");
  }
  ++counters().live_communicators;
  *communicator = self;
  if (group.depth == 0) return Join(self) == ncclSuccess ? ncclInProgress : ncclInternalError;
  group.joins = true;
  group.calls.push_back([self] { return Join(self); });
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t self, ncclResult_t* state) {
  Entry entry("ncclCommGetAsyncError", self);
  if (entry.refused()) return entry.result();
  if (group.depth > 0) {
    return Refuse(ncclInvalidUsage, "ncclCommGetAsyncError of rank " + std::to_string(self->rank) +
                                        " inside a group: nothing of it has begun, ncclGroupEnd is missing");
  }
  *state = Progress(*self);
  if (*state == ncclInvalidUsage) (void)Refuse(*state, self->clique->failure);
  if (*state == ncclSuccess && self->connecting > 0) {
    --self->connecting;
    *state = ncclInProgress;
  }
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t self) {
  Entry entry("ncclCommFinalize", self);
  if (entry.refused()) return entry.result();
  if (self->state != State::kJoined) return Refuse(ncclInvalidUsage, "ncclCommFinalize called twice");
  self->state = State::kFinalizing;
  ++self->clique->finalized;
  return Progress(*self);
}

// As with ncclCommAbort the communicator is gone even when the call fails.
ncclResult_t ncclCommDestroy(ncclComm_t self) {
  Entry entry("ncclCommDestroy", self);
  if (entry.refused() && !entry.planted()) return entry.result();
  if (self->state != State::kFinalizing || Progress(*self) != ncclSuccess) {
    return Refuse(ncclInvalidUsage,
                  "ncclCommDestroy of rank " + std::to_string(self->rank) + " before ncclCommFinalize has ended");
  }
  self->state = State::kDestroyed;
  --counters().live_communicators;
  return entry.result();
}

// Waits for the communicator's running collectives, as the real one waits for its kernels. A planted failure does not
// keep it from that.
ncclResult_t ncclCommAbort(ncclComm_t self) {
  std::this_thread::sleep_for(std::chrono::milliseconds(faults().abort_milliseconds));
  Entry entry("ncclCommAbort", self);
  if (entry.refused() && !entry.planted()) return entry.result();
  self->state = State::kAborted;
  ++counters().aborts;
  --counters().live_communicators;
  self->clique->changed.notify_all();
  self->clique->changed.wait(entry.lock(), [&] { return self->running == 0; });
  return entry.result();
}

// The last error of the calling thread; valid until its next call.
const char* ncclGetLastError(ncclComm_t) { return thread_error.c_str(); }

ncclResult_t ncclGroupStart() {
  if (PlantedFailure()) return Refuse(ncclSystemError, "ncclGroupStart: planted failure");
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  int left = faults().swallowed_group_ends.load();
  while (left > 0 && !faults().swallowed_group_ends.compare_exchange_weak(left, left - 1)) {
  }
  if (left > 0) return ncclSuccess;
  const ncclResult_t ended = EndGroup();
  if (PlantedFailure()) return Refuse(ncclSystemError, "ncclGroupEnd: planted failure");
  return ended;
}

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t communicator, cudaStream_t stream) {
  return Issue(communicator, {Kind::kAllReduce, send, recv, count, type, op}, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t communicator, cudaStream_t stream) {
  return Issue(communicator, {Kind::kReduceScatter, send, recv, count, type, op}, stream);
}

ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
  return Issue(communicator, {Kind::kAllGather, send, recv, count, type}, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  return Issue(communicator, {Kind::kBroadcast, send, recv, count, type, root}, stream);
}

}  // extern "C"
#pragma GCC visibility pop
