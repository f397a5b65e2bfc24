// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/nccl_rank.h"

#include <string>
#include <thread>

#include "cuda_ops/cuda_error.h"

namespace onnxtrain {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long a caller without a stream waits for it to fall idle after a failure: its buffers may still be in use.
constexpr milliseconds kGrace{5000};

ncclRedOp_t OpOf(ReduceOp op) { return op == ReduceOp::kSum ? ncclSum : ncclMax; }

// The type a collective is given, and how many of it make one element.
struct WireType {
  ncclDataType_t type;
  size_t per_element = 1;
};

WireType TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return {ncclFloat32};
    case DType::kDouble:
      return {ncclFloat64};
    case DType::kFloat16:
      return {ncclFloat16};
    case DType::kBfloat16:
      return {ncclBfloat16};
    case DType::kInt8:
      return {ncclInt8};
    case DType::kUint8:
      return {ncclUint8};
    case DType::kInt32:
      return {ncclInt32};
    case DType::kUint32:
      return {ncclUint32};
    case DType::kInt64:
      return {ncclInt64};
    case DType::kUint64:
      return {ncclUint64};
    default:
      return {ncclUint8, SizeOf(dtype)};  // bool, int16, uint16: bytes, which are moved but not reduced
  }
}

Status CheckReducible(DType dtype) {
  const WireType wire = TypeOf(dtype);
  if (wire.per_element == 1 && dtype != DType::kBool) return OkStatus();
  return UsageError("NCCL does not reduce " + std::string(NameOf(dtype)) + "; cast it to int32 or float before");
}

bool OthersAreToBlame(ncclResult_t result) {
  return result == ncclRemoteError || result == ncclSystemError || result == ncclInvalidUsage;
}

void Pause(int64_t round) {
  if (round < 200) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(microseconds(50));
  }
}

}  // namespace

Status NcclError(ncclResult_t result, const char* call, int rank, ncclComm_t communicator) {
  const char* detail = ncclGetLastError(communicator);
  std::string text = std::string(call) + " on rank " + std::to_string(rank) + ": " + ncclGetErrorString(result);
  if (detail != nullptr && *detail != '\0') text += " (" + std::string(detail) + ")";
  text += "; NCCL_DEBUG=WARN shows more";
  return OthersAreToBlame(result) ? CommunicationError(std::move(text)) : InternalError(std::move(text));
}

StatusOr<std::unique_ptr<NcclRank>> NcclRank::Create(const Group& group, int local_rank, int rank, int device) {
  std::unique_ptr<NcclRank> created(new NcclRank(group, local_rank, rank, device));
  RETURN_IF_CUDA_ERROR(cudaSetDevice(device));
  RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&created->stream_, cudaStreamNonBlocking));
  RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&created->idle_, cudaEventDisableTiming));
  if (group.world_size > 1) RETURN_IF_ERROR(created->AllocateProgress());
  return created;
}

Status NcclRank::AllocateProgress() {
  void* page = nullptr;
  RETURN_IF_CUDA_ERROR(cudaHostAlloc(&page, sizeof(ProgressPage), cudaHostAllocMapped | cudaHostAllocPortable));
  page_ = new (page) ProgressPage;
  void* mapped = nullptr;
  RETURN_IF_CUDA_ERROR(cudaHostGetDevicePointer(&mapped, page, 0));
  device_page_ = static_cast<ProgressPage*>(mapped);
  void* counters = nullptr;
  RETURN_IF_CUDA_ERROR(cudaMalloc(&counters, sizeof(ProgressCounters)));
  counters_ = static_cast<ProgressCounters*>(counters);
  RETURN_IF_CUDA_ERROR(cudaMemsetAsync(counters, 0, sizeof(ProgressCounters), stream_));
  RETURN_IF_ERROR(WarmUp());
  RETURN_IF_CUDA_ERROR(cudaMemsetAsync(counters, 0, sizeof(ProgressCounters), stream_));
  RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_));
  *page_ = ProgressPage();
  return OkStatus();
}

// CUDA loads a kernel at its first launch and may wait for the device then, which would never end beside a collective
// that waits for this rank.
Status NcclRank::WarmUp() {
  const CollectiveCall any = {CollectiveKind::kAllReduce, DType::kFloat, 0, 1};
  int error = MarkCollectiveStarted(counters_, device_page_, any.Pack(), stream_);
  RETURN_IF_ERROR(CudaError(static_cast<cudaError_t>(error), "loading a kernel"));
  error = MarkCollectiveCompleted(counters_, device_page_, stream_);
  RETURN_IF_ERROR(CudaError(static_cast<cudaError_t>(error), "loading a kernel"));
  RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_));
  return OkStatus();
}

// After an abort that does not end, the GPU may still use all of this: it is left to the process.
NcclRank::~NcclRank() {
  if (aborting_ && !WaitForAbort(milliseconds(0))) return;
  (void)cudaSetDevice(device_);
  if (idle_ != nullptr) (void)cudaEventDestroy(idle_);
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  if (counters_ != nullptr) (void)cudaFree(counters_);
  if (page_ != nullptr) (void)cudaFreeHost(page_);
}

Status NcclRank::Fail(const Status& status) {
  group_.abort(status);
  return group_.failure->reason();
}

Status NcclRank::Look(const char* name, bool* ready) {
  *ready = false;
  const std::unique_lock<std::mutex> lock(handle_->mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    std::this_thread::sleep_for(milliseconds(1));
    return OkStatus();
  }
  if (handle_->communicator == nullptr) return OkStatus();
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(handle_->communicator, &state);
  const ncclResult_t result = asked != ncclSuccess ? asked : state;
  *ready = result == ncclSuccess;
  if (result == ncclSuccess || result == ncclInProgress) return OkStatus();
  return NcclError(result, name, rank_, handle_->communicator);
}

Status NcclRank::WaitUntilTaken(const char* name) {
  const steady_clock::time_point deadline = steady_clock::now() + group_.timeout;
  for (int64_t round = 0;; ++round) {
    if (group_.failure->failed()) return group_.failure->reason();
    bool ready = false;
    RETURN_IF_ERROR(Look(name, &ready));
    if (ready) return OkStatus();
    if (steady_clock::now() > deadline) {
      return CommunicationError(std::string(name) + " on rank " + std::to_string(rank_) + ": no connection after " +
                                std::to_string(group_.timeout.count()) + " ms; collectives issued by " +
                                group_.order->Issued());
    }
    Pause(round);
  }
}

template <typename Function>
Status NcclRank::Enter(const char* name, Function function) {
  ncclResult_t result;
  {
    std::unique_lock<std::mutex> lock(handle_->mutex);
    if (handle_->communicator == nullptr) return group_.failure->reason();
    result = function(handle_->communicator);
    if (result != ncclSuccess && result != ncclInProgress) {
      return NcclError(result, name, rank_, handle_->communicator);
    }
  }
  return result == ncclSuccess ? OkStatus() : WaitUntilTaken(name);
}

template <typename Function>
Status NcclRank::Enqueue(const char* name, const CollectiveCall& call, cudaStream_t stream, Function function) {
  RETURN_IF_CUDA_ERROR(cudaSetDevice(device_));
  const bool marked = page_ != nullptr;
  if (marked) {
    const int error = MarkCollectiveStarted(counters_, device_page_, call.Pack(), stream);
    RETURN_IF_ERROR(CudaError(static_cast<cudaError_t>(error), "marking the start of a collective"));
  }
  RETURN_IF_ERROR(Enter(name, [&](ncclComm_t communicator) { return function(communicator, stream); }));
  if (!marked) return OkStatus();
  const int error = MarkCollectiveCompleted(counters_, device_page_, stream);
  return CudaError(static_cast<cudaError_t>(error), "marking the end of a collective");
}

template <typename Function>
Status NcclRank::Issue(const char* name, const CollectiveCall& call, void* native_stream, Function function) {
  if (group_.failure->failed()) return group_.failure->reason();
  if (Status same = group_.order->Next(local_rank_, call); !same.ok()) return Fail(same);
  if (call.count == 0) return OkStatus();
  const cudaStream_t stream = native_stream != nullptr ? static_cast<cudaStream_t>(native_stream) : stream_;
  if (Status issued = Enqueue(name, call, stream, function); !issued.ok()) return Fail(issued);
  return native_stream != nullptr ? OkStatus() : WaitOnHost();
}

Status NcclRank::WaitOnHost() {
  if (const cudaError_t error = cudaEventRecord(idle_, stream_); error != cudaSuccess) {
    return Fail(CudaError(error, "cudaEventRecord"));
  }
  steady_clock::time_point deadline = steady_clock::time_point::max();
  for (int64_t round = 0;; ++round) {
    const cudaError_t state = cudaEventQuery(idle_);
    const bool failed = group_.failure->failed();
    if (state == cudaSuccess) return group_.failure->reason();
    if (state != cudaErrorNotReady) return Fail(CudaError(state, "cudaEventQuery"));
    if (failed && deadline == steady_clock::time_point::max()) deadline = steady_clock::now() + kGrace;
    if (failed && steady_clock::now() > deadline) return group_.failure->reason();
    Pause(round);
  }
}

Status NcclRank::AllReduce(const void* send, void* recv, int64_t count, DType dtype, ReduceOp op, void* native_stream) {
  RETURN_IF_ERROR(CheckReducible(dtype));
  return Issue("ncclAllReduce", {CollectiveKind::kAllReduce, dtype, static_cast<int>(op), count}, native_stream,
               [&](ncclComm_t communicator, cudaStream_t stream) {
                 return ncclAllReduce(send, recv, static_cast<size_t>(count), TypeOf(dtype).type, OpOf(op),
                                      communicator, stream);
               });
}

Status NcclRank::ReduceScatter(const void* send, void* recv, int64_t recv_count, DType dtype, ReduceOp op,
                               void* native_stream) {
  RETURN_IF_ERROR(CheckReducible(dtype));
  return Issue("ncclReduceScatter", {CollectiveKind::kReduceScatter, dtype, static_cast<int>(op), recv_count},
               native_stream, [&](ncclComm_t communicator, cudaStream_t stream) {
                 return ncclReduceScatter(send, recv, static_cast<size_t>(recv_count), TypeOf(dtype).type, OpOf(op),
                                          communicator, stream);
               });
}

Status NcclRank::AllGather(const void* send, void* recv, int64_t send_count, DType dtype, void* native_stream) {
  return Issue("ncclAllGather", {CollectiveKind::kAllGather, dtype, 0, send_count}, native_stream,
               [&](ncclComm_t communicator, cudaStream_t stream) {
                 const WireType wire = TypeOf(dtype);
                 return ncclAllGather(send, recv, static_cast<size_t>(send_count) * wire.per_element, wire.type,
                                      communicator, stream);
               });
}

Status NcclRank::Broadcast(const void* send, void* recv, int64_t count, DType dtype, int root, void* native_stream) {
  return Issue("ncclBroadcast", {CollectiveKind::kBroadcast, dtype, root, count}, native_stream,
               [&](ncclComm_t communicator, cudaStream_t stream) {
                 const WireType wire = TypeOf(dtype);
                 return ncclBroadcast(send, recv, static_cast<size_t>(count) * wire.per_element, wire.type, root,
                                      communicator, stream);
               });
}

Status NcclRank::BeginJoin(const ncclUniqueId& id) {
  RETURN_IF_CUDA_ERROR(cudaSetDevice(device_));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const std::lock_guard<std::mutex> lock(handle_->mutex);
  const ncclResult_t result = ncclCommInitRankConfig(&handle_->communicator, group_.world_size, id, rank_, &config);
  if (result == ncclSuccess || result == ncclInProgress) return OkStatus();
  return NcclError(result, "ncclCommInitRankConfig", rank_, nullptr);
}

Status NcclRank::BeginLeave() {
  RETURN_IF_CUDA_ERROR(cudaSetDevice(device_));
  const std::lock_guard<std::mutex> lock(handle_->mutex);
  const ncclResult_t result = ncclCommFinalize(handle_->communicator);
  if (result == ncclSuccess || result == ncclInProgress) return OkStatus();
  return NcclError(result, "ncclCommFinalize", rank_, handle_->communicator);
}

Status NcclRank::Destroy() {
  RETURN_IF_CUDA_ERROR(cudaSetDevice(device_));
  const std::lock_guard<std::mutex> lock(handle_->mutex);
  const ncclResult_t result = ncclCommDestroy(std::exchange(handle_->communicator, nullptr));
  return result == ncclSuccess ? OkStatus() : NcclError(result, "ncclCommDestroy", rank_, nullptr);
}

void NcclRank::BeginAbort() {
  if (aborting_.exchange(true)) return;
  std::thread([handle = handle_, device = device_] {
    ncclComm_t communicator;
    {
      const std::lock_guard<std::mutex> lock(handle->mutex);
      communicator = std::exchange(handle->communicator, nullptr);
    }
    if (communicator != nullptr) {
      (void)cudaSetDevice(device);
      (void)ncclCommAbort(communicator);
    }
    handle->aborted.set_value();
  }).detach();
}

bool NcclRank::WaitForAbort(milliseconds limit) { return aborted_.wait_for(limit) == std::future_status::ready; }

Status NcclRank::Drain() {
  RETURN_IF_CUDA_ERROR(cudaSetDevice(device_));
  RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_));
  return OkStatus();
}

}  // namespace onnxtrain
