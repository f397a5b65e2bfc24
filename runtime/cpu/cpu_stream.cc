// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/cpu_stream.h"

#include <cstring>

namespace onnxtrain {
namespace {

constexpr size_t kDefaultCapacity = 4096;

// Waits until `counter` is at least `target`. std::atomic::wait spins briefly and then sleeps, which leaves the core to
// the compute threads of other ranks.
void WaitUntil(const std::atomic<uint64_t>& counter, uint64_t target) {
  for (uint64_t now = counter.load(std::memory_order_acquire); now < target;
       now = counter.load(std::memory_order_acquire)) {
    counter.wait(now, std::memory_order_acquire);
  }
}

}  // namespace

void CpuEvent::WaitFor(uint64_t point) { WaitUntil(passed_, point); }

void CpuEvent::Pass(uint64_t point) {
  passed_.store(point, std::memory_order_release);
  passed_.notify_all();
}

CpuStream::CpuStream(const StreamOptions& options)
    : ring_(options.queue_capacity == 0 ? kDefaultCapacity : options.queue_capacity),
      on_error_(options.on_error),
      worker_([this] { Work(); }) {}

CpuStream::~CpuStream() {
  Reserve().kind = Kind::kStop;
  Publish();
  worker_.join();
}

CpuStream::Command& CpuStream::Reserve() {
  const uint64_t head = head_.load(std::memory_order_relaxed);
  if (head >= ring_.size()) WaitUntil(tail_, head - ring_.size() + 1);
  return ring_[head % ring_.size()];
}

void CpuStream::Publish() {
  head_.fetch_add(1, std::memory_order_release);
  head_.notify_one();
}

void CpuStream::Launch(Kernel& kernel, const LaunchArgs& args) {
  Command& command = Reserve();
  command.kind = Kind::kLaunch;
  command.kernel = &kernel;
  command.args = args;
  Publish();
}

void CpuStream::Record(Event& event) {
  Command& command = Reserve();
  command.kind = Kind::kRecord;
  command.event = static_cast<CpuEvent*>(&event);
  command.point = ++command.event->recorded_;
  Publish();
}

void CpuStream::Wait(Event& event) {
  Command& command = Reserve();
  command.kind = Kind::kWait;
  command.event = static_cast<CpuEvent*>(&event);
  command.point = command.event->recorded_;
  Publish();
}

void CpuStream::Copy(void* destination, const void* source, size_t bytes) {
  Command& command = Reserve();
  command.kind = Kind::kCopy;
  command.destination = destination;
  command.source = source;
  command.bytes = bytes;
  Publish();
}

void CpuStream::Fill(void* destination, size_t bytes) {
  Command& command = Reserve();
  command.kind = Kind::kFill;
  command.destination = destination;
  command.bytes = bytes;
  Publish();
}

void CpuStream::Stamp(std::chrono::steady_clock::time_point origin, double* microseconds) {
  Command& command = Reserve();
  command.kind = Kind::kStamp;
  command.origin = origin;
  command.destination = microseconds;
  Publish();
}

// The worker looks at the queue only when a command was published, which orders this before.
void CpuStream::ReserveQueue(size_t commands) {
  WaitUntil(tail_, head_.load(std::memory_order_relaxed));
  if (commands > ring_.size()) ring_ = std::vector<Command>(commands);
}

Status CpuStream::Synchronize() {
  WaitUntil(tail_, head_.load(std::memory_order_relaxed));
  return status();
}

Status CpuStream::status() const {
  if (!failed_.load(std::memory_order_acquire)) return OkStatus();
  const std::lock_guard<std::mutex> lock(error_mutex_);
  return error_;
}

void CpuStream::Fail(Status status) {
  {
    const std::lock_guard<std::mutex> lock(error_mutex_);
    error_ = std::move(status);  // the only one: work after it is skipped
  }
  failed_.store(true, std::memory_order_release);
  if (on_error_) on_error_(error_);
}

void CpuStream::Work() {
  for (uint64_t next = 0;; ++next) {
    WaitUntil(head_, next + 1);
    const Command& command = ring_[next % ring_.size()];
    const bool stop = command.kind == Kind::kStop;
    Execute(command);
    tail_.store(next + 1, std::memory_order_release);
    if (stop) return;  // the destructor does not wait on tail_
    tail_.notify_all();
  }
}

void CpuStream::Execute(const Command& command) {
  switch (command.kind) {
    case Kind::kRecord:
      return command.event->Pass(command.point);
    case Kind::kWait:
      return command.event->WaitFor(command.point);
    case Kind::kStop:
      return;
    default:
      break;
  }
  if (failed_.load(std::memory_order_relaxed)) return;  // work after a failure is skipped, order is kept
  switch (command.kind) {
    case Kind::kLaunch: {
      Status status = command.kernel->Launch(command.args);
      if (!status.ok()) Fail(std::move(status));
      return;
    }
    case Kind::kCopy:
      if (command.bytes != 0 && command.destination != command.source) {
        std::memcpy(command.destination, command.source, command.bytes);
      }
      return;
    case Kind::kFill:
      if (command.bytes != 0) std::memset(command.destination, 0, command.bytes);
      return;
    case Kind::kStamp: {
      const std::chrono::duration<double, std::micro> now = std::chrono::steady_clock::now() - command.origin;
      *static_cast<double*>(command.destination) = now.count();
      return;
    }
    default:
      return;
  }
}

}  // namespace onnxtrain
