// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/cuda_stream.h"

#include "cuda_ops/cuda_error.h"

namespace onnxtrain {

StatusOr<std::unique_ptr<CudaEvent>> CudaEvent::Create(int device) {
  RETURN_IF_CUDA_ERROR(cudaSetDevice(device));
  cudaEvent_t event = nullptr;
  RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return std::unique_ptr<CudaEvent>(new CudaEvent(event));
}

CudaEvent::~CudaEvent() { (void)cudaEventDestroy(event_); }

// An error of the work before the event is the stream's to report.
void CudaEvent::Synchronize() { (void)cudaEventSynchronize(event_); }

StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create(int device, const FirstFailure& device_failure,
                                                         const StreamOptions& options) {
  RETURN_IF_CUDA_ERROR(cudaSetDevice(device));
  int least = 0;
  int greatest = 0;
  RETURN_IF_CUDA_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  const int priority = options.name == "communication" ? greatest : least;
  cudaStream_t stream = nullptr;
  RETURN_IF_CUDA_ERROR(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
  return std::unique_ptr<CudaStream>(new CudaStream(device, device_failure, stream, options));
}

CudaStream::~CudaStream() {
  (void)cudaSetDevice(device_);
  (void)cudaStreamSynchronize(stream_);
  (void)cudaStreamDestroy(stream_);
}

Status CudaStream::status() const {
  {
    const std::lock_guard<std::mutex> lock(error_mutex_);
    if (!error_.ok()) return error_;
  }
  return device_failure_.reason();
}

void CudaStream::Keep(const Status& status) {
  if (status.ok()) return;
  {
    const std::lock_guard<std::mutex> lock(error_mutex_);
    if (!error_.ok()) return;
    error_ = status;
  }
  if (on_error_) on_error_(status);
}

void CudaStream::Keep(cudaError_t error, const char* call) {
  if (error != cudaSuccess) Keep(CudaError(error, call));
}

bool CudaStream::Ready() {
  if (!status().ok()) return false;
  Keep(cudaSetDevice(device_), "cudaSetDevice");
  return status().ok();
}

void CudaStream::Launch(Kernel& kernel, const LaunchArgs& args) {
  if (!Ready()) return;
  LaunchArgs on_stream = args;
  on_stream.native_stream = stream_;
  Keep(kernel.Launch(on_stream));
}

// Events are recorded and waited for after a failure, too: nobody may wait forever.
void CudaStream::Record(Event& event) {
  (void)cudaSetDevice(device_);
  Keep(cudaEventRecord(static_cast<CudaEvent&>(event).handle(), stream_), "cudaEventRecord");
}

void CudaStream::Wait(Event& event) {
  (void)cudaSetDevice(device_);
  Keep(cudaStreamWaitEvent(stream_, static_cast<CudaEvent&>(event).handle(), 0), "cudaStreamWaitEvent");
}

void CudaStream::Copy(void* destination, const void* source, size_t bytes) {
  if (bytes == 0 || destination == source || !Ready()) return;
  Keep(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
}

void CudaStream::Fill(void* destination, size_t bytes) {
  if (bytes == 0 || !Ready()) return;
  Keep(cudaMemsetAsync(destination, 0, bytes, stream_), "cudaMemsetAsync");
}

void CudaStream::WriteStamp(void* stamp) {
  const auto& wanted = *static_cast<const TimeStamp*>(stamp);
  const std::chrono::duration<double, std::micro> now = std::chrono::steady_clock::now() - wanted.origin;
  *wanted.microseconds = now.count();
}

void CudaStream::Stamp(std::chrono::steady_clock::time_point origin, double* microseconds) {
  if (!Ready()) return;
  stamps_.push_back({origin, microseconds});
  Keep(cudaLaunchHostFunc(stream_, WriteStamp, &stamps_.back()), "cudaLaunchHostFunc");
}

Status CudaStream::Synchronize() {
  (void)cudaSetDevice(device_);
  Keep(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  stamps_.clear();
  return status();
}

}  // namespace onnxtrain
