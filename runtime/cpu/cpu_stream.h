// SPDX-License-Identifier: Apache-2.0
// A stream on the CPU: one worker thread that takes commands from a bounded queue in order. Enqueueing allocates
// nothing; it blocks while the queue is full. One host thread enqueues.
#ifndef ONNXTRAIN_RUNTIME_CPU_CPU_STREAM_H_
#define ONNXTRAIN_RUNTIME_CPU_CPU_STREAM_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device.h"

namespace onnxtrain {

class CpuEvent : public Event {
 public:
  void Synchronize() override { WaitFor(recorded_); }

 private:
  friend class CpuStream;
  void WaitFor(uint64_t point);
  void Pass(uint64_t point);

  uint64_t recorded_ = 0;             // host thread only: points recorded so far
  std::atomic<uint64_t> passed_ = 0;  // points the recording stream has passed
};

class CpuStream : public Stream {
 public:
  explicit CpuStream(const StreamOptions& options);
  ~CpuStream() override;  // finishes what was enqueued

  void Launch(Kernel& kernel, const LaunchArgs& args) override;
  void Record(Event& event) override;
  void Wait(Event& event) override;
  void Copy(void* destination, const void* source, size_t bytes) override;
  void Fill(void* destination, size_t bytes) override;
  void Stamp(std::chrono::steady_clock::time_point origin, double* microseconds) override;
  void ReserveQueue(size_t commands) override;
  Status Synchronize() override;
  Status status() const override;

 private:
  enum class Kind : uint8_t { kLaunch, kRecord, kWait, kCopy, kFill, kStamp, kStop };
  struct Command {
    Kind kind = Kind::kStop;
    Kernel* kernel = nullptr;
    LaunchArgs args;
    CpuEvent* event = nullptr;
    uint64_t point = 0;
    void* destination = nullptr;
    const void* source = nullptr;
    size_t bytes = 0;
    std::chrono::steady_clock::time_point origin;
  };

  Command& Reserve();  // waits for room; the caller fills it and calls Publish
  void Publish();
  void Work();
  void Execute(const Command& command);
  void Fail(Status status);

  std::vector<Command> ring_;
  std::atomic<uint64_t> head_ = 0;  // commands enqueued
  std::atomic<uint64_t> tail_ = 0;  // commands done
  std::atomic<bool> failed_ = false;
  mutable std::mutex error_mutex_;
  Status error_;
  const std::function<void(const Status&)> on_error_;
  std::thread worker_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_CPU_STREAM_H_
