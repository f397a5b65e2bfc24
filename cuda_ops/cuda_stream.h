// SPDX-License-Identifier: Apache-2.0
// A CUDA stream and event. The communication stream has the highest priority, so that a collective's blocks are placed
// before those of the compute kernels that are already queued.
#ifndef ONNXTRAIN_CUDA_OPS_CUDA_STREAM_H_
#define ONNXTRAIN_CUDA_OPS_CUDA_STREAM_H_

#include <cuda_runtime_api.h>

#include <list>
#include <memory>
#include <mutex>

#include "cuda_ops/first_failure.h"
#include "runtime/device.h"

namespace onnxtrain {

class CudaEvent : public Event {
 public:
  static StatusOr<std::unique_ptr<CudaEvent>> Create(int device);
  ~CudaEvent() override;
  void Synchronize() override;
  cudaEvent_t handle() const { return event_; }

 private:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}
  cudaEvent_t event_;
};

class CudaStream : public Stream {
 public:
  // `device_failure` is the device's, which the stream reports as its own.
  static StatusOr<std::unique_ptr<CudaStream>> Create(int device, const FirstFailure& device_failure,
                                                      const StreamOptions& options);
  ~CudaStream() override;  // finishes what was enqueued

  void Launch(Kernel& kernel, const LaunchArgs& args) override;
  void Record(Event& event) override;
  void Wait(Event& event) override;
  void Copy(void* destination, const void* source, size_t bytes) override;
  void Fill(void* destination, size_t bytes) override;
  // By a host function of the stream: a few microseconds late, and recorded as one where the stream records.
  void Stamp(std::chrono::steady_clock::time_point origin, double* microseconds) override;
  Status Synchronize() override;
  Status status() const override;

  cudaStream_t handle() const { return stream_; }
  // Keeps the first error and tells the owner; OK changes nothing.
  void Keep(const Status& status);

 private:
  struct TimeStamp {
    std::chrono::steady_clock::time_point origin;
    double* microseconds;
  };
  static void WriteStamp(void* stamp);

  CudaStream(int device, const FirstFailure& device_failure, cudaStream_t stream, const StreamOptions& options)
      : device_(device), device_failure_(device_failure), stream_(stream), on_error_(options.on_error) {}
  // This GPU is current and nothing has failed.
  bool Ready();
  void Keep(cudaError_t error, const char* call);

  const int device_;
  const FirstFailure& device_failure_;
  const cudaStream_t stream_;
  const std::function<void(const Status&)> on_error_;
  mutable std::mutex error_mutex_;
  Status error_;
  std::list<TimeStamp> stamps_;  // of host functions that may still be pending; freed by Synchronize
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CUDA_STREAM_H_
