// SPDX-License-Identifier: Apache-2.0
#include "tests/support/interleaved_device.h"

#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace onnxtrain {
namespace {

// One command; `ready` says whether it may run now.
struct Task {
  std::function<bool()> ready;
  std::function<Status()> run;
};

// The queues of all streams and the generator that picks among them.
class Picker {
 public:
  explicit Picker(uint64_t seed) : generator_(seed) {}

  std::deque<Task>* AddQueue() { return queues_.emplace_back(std::make_unique<std::deque<Task>>()).get(); }

  // Runs until nothing is left. A queue that never becomes ready is a deadlock of the plan.
  Status RunAll() {
    for (;;) {
      std::vector<std::deque<Task>*> ready;
      bool pending = false;
      for (const auto& queue : queues_) {
        pending = pending || !queue->empty();
        if (!queue->empty() && queue->front().ready()) ready.push_back(queue.get());
      }
      if (!pending) return first_error_;
      CHECK_WITH(!ready.empty(), "deadlock: every stream waits");
      std::deque<Task>& chosen = *ready[generator_() % ready.size()];
      const Task task = std::move(chosen.front());
      chosen.pop_front();
      const Status status = task.run();
      if (first_error_.ok()) first_error_ = status;
    }
  }

 private:
  std::mt19937_64 generator_;
  std::vector<std::unique_ptr<std::deque<Task>>> queues_;
  Status first_error_;
};

class InterleavedEvent : public Event {
 public:
  explicit InterleavedEvent(Picker& picker) : picker_(picker) {}
  void Synchronize() override { (void)picker_.RunAll(); }
  uint64_t recorded = 0;
  uint64_t passed = 0;

 private:
  Picker& picker_;
};

class InterleavedStream : public Stream {
 public:
  explicit InterleavedStream(Picker& picker) : picker_(picker), queue_(*picker.AddQueue()) {}

  void Launch(Kernel& kernel, const LaunchArgs& args) override {
    Push([&kernel, args] { return kernel.Launch(args); });
  }
  void Record(Event& event) override {
    auto& mine = static_cast<InterleavedEvent&>(event);
    Push([&mine, point = ++mine.recorded] {
      mine.passed = point;
      return OkStatus();
    });
  }
  void Wait(Event& event) override {
    auto& mine = static_cast<InterleavedEvent&>(event);
    queue_.push_back({[&mine, point = mine.recorded] { return mine.passed >= point; }, [] { return OkStatus(); }});
  }
  void Copy(void* destination, const void* source, size_t bytes) override {
    Push([=] {
      if (bytes != 0 && destination != source) std::memcpy(destination, source, bytes);
      return OkStatus();
    });
  }
  void Fill(void* destination, size_t bytes) override {
    Push([=] {
      if (bytes != 0) std::memset(destination, 0, bytes);
      return OkStatus();
    });
  }
  void Stamp(std::chrono::steady_clock::time_point, double* microseconds) override {
    Push([microseconds] {
      *microseconds = 0;  // there is no time here
      return OkStatus();
    });
  }
  Status Synchronize() override { return picker_.RunAll(); }
  Status status() const override { return OkStatus(); }

 private:
  void Push(std::function<Status()> run) {
    queue_.push_back({[] { return true; }, std::move(run)});
  }
  Picker& picker_;
  std::deque<Task>& queue_;
};

class InterleavedDevice : public Device {
 public:
  InterleavedDevice(Device& device, uint64_t seed) : device_(device), picker_(seed) {}
  std::string_view name() const override { return "interleaved"; }
  const KernelRegistry& kernels() const override { return device_.kernels(); }
  bool shares_host_memory() const override { return device_.shares_host_memory(); }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override { return device_.Allocate(bytes); }
  StatusOr<std::unique_ptr<Buffer>> AllocateStaging(size_t bytes) override { return device_.AllocateStaging(bytes); }
  StatusOr<std::unique_ptr<Stream>> CreateStream(const StreamOptions&) override {
    return std::unique_ptr<Stream>(std::make_unique<InterleavedStream>(picker_));
  }
  StatusOr<std::unique_ptr<Event>> CreateEvent() override {
    return std::unique_ptr<Event>(std::make_unique<InterleavedEvent>(picker_));
  }
  Status CopyToDevice(void* destination, const void* source, size_t bytes) override {
    return device_.CopyToDevice(destination, source, bytes);
  }
  Status CopyToHost(void* destination, const void* source, size_t bytes) override {
    return device_.CopyToHost(destination, source, bytes);
  }

 private:
  Device& device_;
  Picker picker_;
};

}  // namespace

std::unique_ptr<Device> MakeInterleavedDevice(Device& device, uint64_t seed) {
  return std::make_unique<InterleavedDevice>(device, seed);
}

}  // namespace onnxtrain
