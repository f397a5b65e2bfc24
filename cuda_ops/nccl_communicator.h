// SPDX-License-Identifier: Apache-2.0
// The ranks of this process in an NCCL communicator, each on a GPU of its own. Without NCCL (nccl_stub.cc) the same
// interface serves a world of one rank.
//
// Each rank's Communicator is used by one host thread at a time, ranks by different threads; a call enqueues on the
// caller's stream, eagerly or while it is captured. Calls wait for the host side of NCCL (which connects ranks at their
// first collective), so one thread must not issue for several ranks. Sums are NCCL's: the same bits on every rank, but
// the order of addition is NCCL's choice.
//
// Failure: a watchdog notices collectives that stand still, NCCL's asynchronous errors are polled, collectives that
// differ between ranks of this process are refused before they are issued. Each aborts the group: pending work ends,
// and every later call returns that first reason. Only a new group can communicate again. A stream passes a collective
// that was aborted as if it had ended, with anything in its buffers: who waits for a stream asks status() afterwards,
// or stops the stream in on_failure.
#ifndef ONNXTRAIN_CUDA_OPS_NCCL_COMMUNICATOR_H_
#define ONNXTRAIN_CUDA_OPS_NCCL_COMMUNICATOR_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/status.h"
#include "runtime/communicator.h"

namespace onnxtrain {

struct NcclGroupOptions {
  std::vector<int> devices;                   // CUDA's ordinal for each rank of this process, all different
  int first_rank = 0;                         // of this process; its ranks are consecutive
  int world_size = 0;                         // of all processes; 0: devices.size()
  std::string id;                             // from NewId() of one process; empty where all ranks are in this process
  std::chrono::milliseconds timeout{600000};  // after which a collective that stands still fails
  std::chrono::milliseconds create_timeout{300000};  // for all ranks to join, and to leave
  // Called at most once after creation, with the reason, by the thread that notices a failure or calls Abort, before
  // any stream is released. Does not block and does not call into the group. May be null. Not called without NCCL: one
  // rank has nobody who fails it.
  std::function<void(const Status&)> on_failure;
  // Called at most once, from the watchdog's thread, when NCCL has not ended a failed group's work within
  // abort_timeout: then streams may never be passed, and only the end of the process frees the GPU. May be null.
  std::function<void(const Status&)> on_stuck;
  std::chrono::milliseconds abort_timeout{60000};
};

class NcclGroup {
 public:
  // What joins the processes of a group: 128 bytes, passed on by rendezvous.h. Made by one process, for one group.
  static StatusOr<std::string> NewId();
  // NCCL's version as "2.28.9" for messages and the rendezvous; "none" without NCCL.
  static std::string LibraryVersion();

  // Blocks until all ranks of all processes have joined. Usage: options that cannot be honoured. Communication: NCCL's
  // own words, or the time is up.
  static StatusOr<std::unique_ptr<NcclGroup>> Create(const NcclGroupOptions& options);
  // All streams have passed the group's collectives, and graphs that hold some are destroyed.
  ~NcclGroup();

  int size() const;  // ranks of this process
  // Its rank() is first_rank + local_rank.
  Communicator& communicator(int local_rank);
  // OK, or the reason why the group no longer communicates. Any thread.
  Status status() const;
  // The last collectives of a rank, a line each; may be called at any time.
  std::string History(int local_rank) const;

 private:
  class State;
  explicit NcclGroup(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_NCCL_COMMUNICATOR_H_
