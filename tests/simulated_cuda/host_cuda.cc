// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated_cuda/host_cuda.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "tests/simulated_cuda/fiber.h"

namespace host_cuda {
namespace {

std::atomic<ThreadOrder> thread_order = ThreadOrder::kForward;
std::atomic<uint32_t> order_seed = 0;

enum class State : uint8_t { kReady, kAtWarpBarrier, kAtBlockBarrier, kDone };

class BlockRun;
thread_local BlockRun* running = nullptr;

// The fibers of one block size, used again from block to block by one host thread.
class BlockRun {
 public:
  BlockRun(dim3 block, size_t shared_bytes)
      : block_dim_(block), threads_(size_t{block.x} * block.y * block.z), shared_(shared_bytes / 16 + 1) {
    for (size_t i = 0; i < threads_.size(); ++i) {
      Thread& thread = threads_[i];
      thread.indices.thread = {static_cast<unsigned>(i % block.x), static_cast<unsigned>(i / block.x % block.y),
                               static_cast<unsigned>(i / block.x / block.y)};
      thread.indices.block_dim = block;
      thread.indices.lane = static_cast<unsigned>(i % 32);
      order_.push_back(i);
    }
  }

  void Run(uint3 block, dim3 grid, Body body, const void* arguments) {
    body_ = body;
    arguments_ = arguments;
    for (Thread& thread : threads_) {
      thread.indices.block = block;
      thread.indices.grid_dim = grid;
      thread.state = State::kReady;
      thread.fiber.Prepare(&BlockRun::Entry, this);
    }
    Arrange();
    BlockRun* const outer = running;
    running = this;
    while (RunReady()) {
    }
    running = outer;
  }

  const Indices& here() const { return current_->indices; }
  void* shared() { return shared_.data(); }

  void Barrier(State state) {
    fiber_release(this);
    current_->state = state;
    current_->fiber.Yield(main_);
    fiber_acquire(this);
  }

  uint64_t Exchange(uint64_t mine, unsigned lane) {
    Thread& self = *current_;
    const size_t warp = static_cast<size_t>(&self - threads_.data()) / 32 * 32;
    self.slot = mine;
    Barrier(State::kAtWarpBarrier);
    const size_t other = warp + lane;
    const uint64_t theirs = other < threads_.size() ? threads_[other].slot : mine;
    Barrier(State::kAtWarpBarrier);
    return theirs;
  }

 private:
  struct Thread {
    Indices indices;
    State state = State::kReady;
    uint64_t slot = 0;
    Fiber fiber;
  };

  static void Entry(void* self) {
    auto* run = static_cast<BlockRun*>(self);
    run->body_(run->arguments_);
    run->current_->state = State::kDone;
    run->current_->fiber.Finish(run->main_);
  }

  void Arrange() {
    std::sort(order_.begin(), order_.end());
    const ThreadOrder order = thread_order;
    if (order == ThreadOrder::kReversed) std::reverse(order_.begin(), order_.end());
    if (order == ThreadOrder::kShuffled) std::shuffle(order_.begin(), order_.end(), std::mt19937(order_seed++));
  }

  // One round over the fibers that may run, then opens the barriers that are complete. False when all are done.
  bool RunReady() {
    bool ran = false;
    for (const size_t index : order_) {
      Thread& thread = threads_[index];
      if (thread.state != State::kReady) continue;
      ran = true;
      current_ = &thread;
      thread.fiber.Resume(main_);
    }
    const bool opened = OpenWarps() || OpenBlock();
    const auto is_done = [](const Thread& thread) { return thread.state == State::kDone; };
    if (std::all_of(threads_.begin(), threads_.end(), is_done)) return false;
    if (ran || opened) return true;
    std::fprintf(stderr, "host CUDA: some threads of a block wait at a barrier that the others do not reach\n");
    std::abort();
  }

  bool OpenWarps() {
    bool opened = false;
    for (size_t warp = 0; warp < threads_.size(); warp += 32) {
      opened = Open(warp, std::min(warp + 32, threads_.size()), State::kAtWarpBarrier) || opened;
    }
    return opened;
  }
  bool OpenBlock() { return Open(0, threads_.size(), State::kAtBlockBarrier); }

  // Threads that have returned are not waited for.
  bool Open(size_t begin, size_t end, State state) {
    bool any = false;
    for (size_t i = begin; i < end; ++i) {
      if (threads_[i].state != state && threads_[i].state != State::kDone) return false;
      any = any || threads_[i].state == state;
    }
    for (size_t i = begin; i < end; ++i) {
      if (threads_[i].state == state) threads_[i].state = State::kReady;
    }
    return any;
  }

  const dim3 block_dim_;
  std::vector<Thread> threads_;
  std::vector<size_t> order_;
  struct alignas(16) Unit {
    unsigned char bytes[16];
  };
  std::vector<Unit> shared_;
  Fiber main_;
  Thread* current_ = nullptr;
  Body body_ = nullptr;
  const void* arguments_ = nullptr;
};

struct Registry {
  std::mutex mutex;
  std::map<void*, Thunk> thunks;
};
Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

}  // namespace

void SetThreadOrder(ThreadOrder order, uint32_t seed) {
  thread_order = order;
  order_seed = seed;
}

const Indices& Here() { return running->here(); }
void* DynamicShared() { return running->shared(); }
void BlockBarrier() { running->Barrier(State::kAtBlockBarrier); }
void WarpBarrier() { running->Barrier(State::kAtWarpBarrier); }
uint64_t Exchange(uint64_t mine, unsigned lane) { return running->Exchange(mine, lane); }

void RunGrid(dim3 grid, dim3 block, size_t shared_bytes, Body body, const void* arguments) {
  // Stacks are dear: the fibers of a thread's last block size are kept.
  thread_local std::map<std::tuple<unsigned, unsigned, unsigned, size_t>, std::unique_ptr<BlockRun>> kept;
  std::unique_ptr<BlockRun>& run = kept[{block.x, block.y, block.z, shared_bytes}];
  if (run == nullptr) run = std::make_unique<BlockRun>(block, shared_bytes);
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) run->Run({x, y, z}, grid, body, arguments);
    }
  }
}

bool Register(void* function, const Thunk& thunk) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  return registry().thunks.emplace(function, thunk).second;
}

}  // namespace host_cuda

extern "C" {

// The sizes of a kernel's arguments, at most `capacity` of them; their number, or 0 for a function that is no kernel.
size_t onnxtrain_host_kernel_argument_bytes(void* function, size_t* sizes, size_t capacity) {
  host_cuda::Registry& all = host_cuda::registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.thunks.find(function);
  if (found == all.thunks.end() || found->second.argument_count > capacity) return 0;
  std::copy_n(found->second.argument_bytes, found->second.argument_count, sizes);
  return found->second.argument_count;
}

bool onnxtrain_host_kernel_run(void* function, dim3 grid, dim3 block, size_t shared_bytes, void** arguments) {
  host_cuda::Thunk thunk;
  {
    host_cuda::Registry& all = host_cuda::registry();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.thunks.find(function);
    if (found == all.thunks.end()) return false;
    thunk = found->second;
  }
  thunk.run(grid, block, shared_bytes, arguments);
  return true;
}

}  // extern "C"
