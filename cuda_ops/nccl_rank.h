// SPDX-License-Identifier: Apache-2.0
// One rank of an NcclGroup: its ncclComm_t, its progress page and its stream for callers without one.
#ifndef ONNXTRAIN_CUDA_OPS_NCCL_RANK_H_
#define ONNXTRAIN_CUDA_OPS_NCCL_RANK_H_

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>

#include "cuda_ops/collective_call.h"
#include "cuda_ops/collective_order.h"
#include "cuda_ops/first_failure.h"
#include "cuda_ops/kernels/collective_progress.h"
#include "runtime/communicator.h"

namespace onnxtrain {

// "ncclAllReduce on rank 1: invalid usage (NCCL's last error)". Communication where another rank or the network is to
// blame, else Internal.
Status NcclError(ncclResult_t result, const char* call, int rank, ncclComm_t communicator);

class NcclRank : public Communicator {
 public:
  // What the ranks of a process share; outlives them.
  struct Group {
    int world_size = 1;
    std::chrono::milliseconds timeout{0};
    CollectiveOrder* order = nullptr;
    FirstFailure* failure = nullptr;
    std::function<void(const Status&)> abort;  // of all ranks of the process
  };
  static StatusOr<std::unique_ptr<NcclRank>> Create(const Group& group, int local_rank, int rank, int device);
  ~NcclRank() override;

  int rank() const override { return rank_; }
  int size() const override { return group_.world_size; }
  Status AllReduce(const void* send, void* recv, int64_t count, DType dtype, ReduceOp op, void* native_stream) override;
  Status ReduceScatter(const void* send, void* recv, int64_t recv_count, DType dtype, ReduceOp op,
                       void* native_stream) override;
  Status AllGather(const void* send, void* recv, int64_t send_count, DType dtype, void* native_stream) override;
  Status Broadcast(const void* send, void* recv, int64_t count, DType dtype, int root, void* native_stream) override;
  void Abort(const Status& reason) override { group_.abort(reason); }

  // --- for the group -------------------------------------------------------------------------------------------------
  // Begins to join; between ncclGroupStart and ncclGroupEnd.
  Status BeginJoin(const ncclUniqueId& id);
  // Begins to leave; all ranks do so before any is destroyed.
  Status BeginLeave();
  // What NCCL says of this communicator: its error as Status; else *ready tells whether it has done with joining,
  // leaving or connecting. Does not block.
  Status Look(const char* name, bool* ready);
  Status Destroy();  // after it has left
  // Ends what is pending, on a thread of its own since that may block. Idempotent.
  void BeginAbort();
  // After the group has failed: false when the abort has not ended by then. Any thread.
  bool WaitForAbort(std::chrono::milliseconds limit);
  Status Drain();                                         // waits for its own stream
  const ProgressPage* progress() const { return page_; }  // null in a world of one rank

 private:
  NcclRank(const Group& group, int local_rank, int rank, int device)
      : group_(group), local_rank_(local_rank), rank_(rank), device_(device) {}
  Status AllocateProgress();
  Status WarmUp();

  // Keeps the status as the group's failure unless there is one, and returns the group's.
  Status Fail(const Status& status);
  // One collective from start to end; the other collectives are arguments to this. `function(communicator, stream)`
  // calls NCCL.
  template <typename Function>
  Status Issue(const char* name, const CollectiveCall& call, void* native_stream, Function function);
  template <typename Function>
  Status Enqueue(const char* name, const CollectiveCall& call, cudaStream_t stream, Function function);
  // One call into NCCL with nobody else inside, until NCCL has taken it.
  template <typename Function>
  Status Enter(const char* name, Function function);
  Status WaitUntilTaken(const char* name);
  // Until the own stream has passed idle_, or the group has failed.
  Status WaitOnHost();

  // Outlives the rank where an abort does not end.
  struct Handle {
    std::mutex mutex;  // held inside each NCCL call: a communicator is used by one thread at a time
    ncclComm_t communicator = nullptr;
    std::promise<void> aborted;
  };

  const Group group_;
  const int local_rank_;
  const int rank_;
  const int device_;
  const std::shared_ptr<Handle> handle_ = std::make_shared<Handle>();
  std::atomic<bool> aborting_{false};
  const std::shared_future<void> aborted_ = handle_->aborted.get_future().share();
  cudaStream_t stream_ = nullptr;  // for callers without one
  cudaEvent_t idle_ = nullptr;     // of it
  ProgressPage* page_ = nullptr;
  ProgressPage* device_page_ = nullptr;
  ProgressCounters* counters_ = nullptr;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_NCCL_RANK_H_
