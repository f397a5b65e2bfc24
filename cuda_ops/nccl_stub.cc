// SPDX-License-Identifier: Apache-2.0
// Takes the place of nccl_communicator.cc and nccl_rank.cc where NCCL is not found: a world of one rank, whose
// collectives are copies.
#include <cuda_runtime_api.h>

#include <mutex>

#include "cuda_ops/cuda_error.h"
#include "cuda_ops/nccl_communicator.h"

namespace onnxtrain {

class NcclGroup::State : public Communicator {
 public:
  State(int device, std::function<void(const Status&)> on_failure)
      : device_(device), on_failure_(std::move(on_failure)) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  Status AllReduce(const void* send, void* recv, int64_t count, DType dtype, ReduceOp, void* native_stream) override {
    return Copy(send, recv, count, dtype, native_stream);
  }
  Status ReduceScatter(const void* send, void* recv, int64_t recv_count, DType dtype, ReduceOp,
                       void* native_stream) override {
    return Copy(send, recv, recv_count, dtype, native_stream);
  }
  Status AllGather(const void* send, void* recv, int64_t send_count, DType dtype, void* native_stream) override {
    return Copy(send, recv, send_count, dtype, native_stream);
  }
  Status Broadcast(const void* send, void* recv, int64_t count, DType dtype, int, void* native_stream) override {
    return Copy(send, recv, count, dtype, native_stream);
  }
  void Abort(const Status& reason) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!aborted_.ok()) return;
      aborted_ = reason;
    }
    if (on_failure_) on_failure_(reason);
  }
  Status status() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return aborted_;
  }

 private:
  Status Copy(const void* send, void* recv, int64_t count, DType dtype, void* native_stream) {
    RETURN_IF_ERROR(status());
    if (count == 0 || send == recv) return OkStatus();
    const size_t bytes = static_cast<size_t>(count) * SizeOf(dtype);
    const cudaStream_t stream = static_cast<cudaStream_t>(native_stream);
    RETURN_IF_CUDA_ERROR(cudaSetDevice(device_));
    RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(recv, send, bytes, cudaMemcpyDefault, stream));
    if (stream == nullptr) RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream));
    return OkStatus();
  }

  const int device_;
  const std::function<void(const Status&)> on_failure_;
  mutable std::mutex mutex_;
  Status aborted_;
};

StatusOr<std::string> NcclGroup::NewId() {
  return UsageError("this build has no NCCL, which several processes need: install it and build again");
}

std::string NcclGroup::LibraryVersion() { return "none"; }

StatusOr<std::unique_ptr<NcclGroup>> NcclGroup::Create(const NcclGroupOptions& options) {
  const size_t ranks = options.world_size == 0 ? options.devices.size() : static_cast<size_t>(options.world_size);
  if (ranks != 1 || options.devices.size() != 1 || options.first_rank != 0) {
    return UsageError(std::to_string(ranks) + " ranks on GPUs need NCCL, and this build has none: install it (nccl.h " +
                      "and libnccl.so.2) and build again, or use --ranks 1");
  }
  return std::unique_ptr<NcclGroup>(new NcclGroup(std::make_unique<State>(options.devices[0], options.on_failure)));
}

NcclGroup::NcclGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}
NcclGroup::~NcclGroup() = default;
int NcclGroup::size() const { return 1; }
Communicator& NcclGroup::communicator(int) { return *state_; }
Status NcclGroup::status() const { return state_->status(); }
std::string NcclGroup::History(int) const { return ""; }

}  // namespace onnxtrain
