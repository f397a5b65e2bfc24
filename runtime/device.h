// SPDX-License-Identifier: Apache-2.0
// What a backend provides: memory, in-order streams, events, kernels. Equal to a CUDA device with cudaStream_t and
// cudaEvent_t; on the CPU a stream is a worker thread with a queue.
//
// Calls on a stream enqueue and return. Work errors stop the stream: later work is skipped, events are still signalled
// so that nobody waits forever, and the first error comes out of Synchronize. One host thread at a time uses a stream.
#ifndef ONNXTRAIN_RUNTIME_DEVICE_H_
#define ONNXTRAIN_RUNTIME_DEVICE_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "graph/status.h"
#include "runtime/kernel.h"

namespace onnxtrain {

// A point in a stream. Recording again moves it; a wait enqueued before that means the earlier point.
class Event {
 public:
  virtual ~Event() = default;
  // Blocks the host until the point last recorded has been passed; at once when none was.
  virtual void Synchronize() = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;
  // The kernel, the arrays behind `args` and `run` are borrowed until the stream has passed the work.
  virtual void Launch(Kernel& kernel, const LaunchArgs& args) = 0;
  virtual void Record(Event& event) = 0;
  virtual void Wait(Event& event) = 0;
  virtual void Copy(void* destination, const void* source, size_t bytes) = 0;
  virtual void Fill(void* destination, size_t bytes) = 0;  // with zero
  // Writes the time since `origin` to host memory when the stream gets there: for traces, it may slow the stream down.
  virtual void Stamp(std::chrono::steady_clock::time_point origin, double* microseconds) = 0;
  // Makes room for so many pending commands, if the stream has a queue of its own; called while nothing is pending.
  virtual void ReserveQueue(size_t commands) { (void)commands; }
  // Blocks the host until all enqueued work is done; the first error since creation.
  virtual Status Synchronize() = 0;
  // The first error so far, without waiting.
  virtual Status status() const = 0;
};

// Work of one or more streams, kept and enqueued again as a whole: a CUDA graph. Kernels, memory and events it names
// stay where they are while it exists.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void Replay(Stream& origin) = 0;
};

// Memory, zero-filled, 256-byte aligned, freed with the object.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::byte* data() const = 0;
  virtual size_t size() const = 0;
};

struct StreamOptions {
  std::string_view name;  // "compute", "communication", "copy"
  int rank = 0;
  int threads = 1;            // OpenMP team of the stream's kernels; 1: none
  size_t queue_capacity = 0;  // commands that may be pending; 0: the backend's default
  // Called once, from the stream's thread, with the stream's first error: ranks that wait for this one are released
  // here.
  std::function<void(const Status&)> on_error = nullptr;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;  // "cpu", "cuda", "sim"
  virtual const KernelRegistry& kernels() const = 0;
  // Whether streams and host read each other's memory. If not, the host touches device memory only through the copies
  // below, and streams copy from and to host memory of AllocateStaging.
  virtual bool shares_host_memory() const = 0;
  virtual StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) = 0;
  // Host memory (page-locked on CUDA) that a stream copies from and to without stopping the host.
  virtual StatusOr<std::unique_ptr<Buffer>> AllocateStaging(size_t bytes) = 0;
  virtual StatusOr<std::unique_ptr<Stream>> CreateStream(const StreamOptions& options) = 0;
  virtual StatusOr<std::unique_ptr<Event>> CreateEvent() = 0;
  // Whether streams can record. Between the two calls below nothing that is enqueued on `origin`, or on a stream that
  // waits for its events, runs: it is kept. All those streams are joined in `origin` before the end. Null after a
  // failure, which `origin` keeps as its error.
  virtual bool can_record() const { return false; }
  virtual void BeginRecording(Stream& origin);
  virtual std::unique_ptr<Recording> EndRecording(Stream& origin);
  // Between host and device memory; blocks. On the CPU a memcpy.
  virtual Status CopyToDevice(void* destination, const void* source, size_t bytes) = 0;
  virtual Status CopyToHost(void* destination, const void* source, size_t bytes) = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DEVICE_H_
