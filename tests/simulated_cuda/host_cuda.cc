// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated_cuda/host_cuda.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "tests/simulated_cuda/fiber.h"

namespace host_cuda {
namespace {

std::atomic<ThreadOrder> thread_order = ThreadOrder::kForward;
std::atomic<uint32_t> order_seed = 0;

// Brings what stands in ascending order into the order of now.
template <typename T>
void InOrder(std::vector<T>& ascending) {
  const ThreadOrder order = thread_order;
  if (order == ThreadOrder::kReversed) std::reverse(ascending.begin(), ascending.end());
  if (order == ThreadOrder::kShuffled) std::shuffle(ascending.begin(), ascending.end(), std::mt19937(order_seed++));
}

std::vector<uint3> BlocksOf(dim3 grid) {
  std::vector<uint3> blocks;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) blocks.push_back({x, y, z});
    }
  }
  InOrder(blocks);
  return blocks;
}

enum class State : uint8_t { kReady, kAtWarpBarrier, kAtBlockBarrier, kDone };

class BlockRun;
thread_local BlockRun* running = nullptr;

// What one thread of a block did before a barrier happens before what another does behind it, and nothing else is
// ordered: not two blocks, not two warps by a barrier of one, not by a shuffle. Sanitizers that see threads are told so
// by a tag per barrier: a pair each for the block and for every warp, used in turn, since a fast thread may reach the
// next barrier while a slow one still leaves this one. Tags are new memory for every block.
class BarrierTags {
 public:
  explicit BarrierTags(size_t threads) : tags_(new uint64_t[2 + (threads + 31) / 32 * 2]) {}
  void* OfBlock(uint32_t passed) { return &tags_[passed % 2]; }
  void* OfWarp(size_t warp, uint32_t passed) { return &tags_[2 + 2 * warp + passed % 2]; }

 private:
  std::unique_ptr<uint64_t[]> tags_;
};

// The fibers of one block size, used again from block to block by one host thread.
class BlockRun {
 public:
  BlockRun(dim3 block, size_t shared_bytes)
      : threads_(size_t{block.x} * block.y * block.z), shared_bytes_(shared_bytes) {
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
    tags_.emplace(threads_.size());
    // Dynamic shared memory is new for every block, as large as asked for, and not zero.
    shared_.reset();
    if (void* memory = nullptr; shared_bytes_ > 0 && posix_memalign(&memory, 16, shared_bytes_) == 0)
      shared_.reset(memory);
    if (shared_ != nullptr) std::memset(shared_.get(), 0xff, shared_bytes_);
    for (Thread& thread : threads_) {
      thread.indices.block = block;
      thread.indices.grid_dim = grid;
      thread.state = State::kReady;
      thread.block_barriers = thread.warp_barriers = 0;
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
  void* shared() { return shared_.get(); }

  void BlockBarrier() {
    void* const tag = tags_->OfBlock(current_->block_barriers++);
    fiber_release(tag);
    Wait(State::kAtBlockBarrier);
    fiber_acquire(tag);
  }

  void WarpBarrier() {
    void* const tag = tags_->OfWarp(IndexOf(*current_) / 32, current_->warp_barriers++);
    fiber_release(tag);
    Wait(State::kAtWarpBarrier);
    fiber_acquire(tag);
  }

  // All lanes meet, but memory is not ordered.
  uint64_t Exchange(uint64_t mine, unsigned lane) {
    Thread& self = *current_;
    self.slot = mine;
    Wait(State::kAtWarpBarrier);
    const size_t other = IndexOf(self) / 32 * 32 + lane;
    const uint64_t theirs = other < threads_.size() ? threads_[other].slot : mine;
    Wait(State::kAtWarpBarrier);
    return theirs;
  }

  // What all blocks did happens before what the host thread does behind the grid.
  void Join() { fiber_acquire(&finished_); }

 private:
  struct Thread {
    Indices indices;
    State state = State::kReady;
    uint64_t slot = 0;
    uint32_t block_barriers = 0;  // passed
    uint32_t warp_barriers = 0;
    Fiber fiber;
  };

  size_t IndexOf(const Thread& thread) const { return static_cast<size_t>(&thread - threads_.data()); }

  void Wait(State state) {
    current_->state = state;
    current_->fiber.Yield(main_);
  }

  static void Entry(void* self) {
    auto* run = static_cast<BlockRun*>(self);
    run->body_(run->arguments_);
    run->current_->state = State::kDone;
    fiber_release(&run->finished_);
    run->current_->fiber.Finish(run->main_);
  }

  void Arrange() {
    std::sort(order_.begin(), order_.end());
    InOrder(order_);
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

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::vector<Thread> threads_;
  std::vector<size_t> order_;
  const size_t shared_bytes_;
  std::unique_ptr<void, Free> shared_;
  std::optional<BarrierTags> tags_;
  uint64_t finished_ = 0;  // a tag
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
void BlockBarrier() { running->BlockBarrier(); }
void WarpBarrier() { running->WarpBarrier(); }
uint64_t Exchange(uint64_t mine, unsigned lane) { return running->Exchange(mine, lane); }

#if defined(ONNXTRAIN_FIBERS_UNDER_TSAN)

// Each block on a host thread of its own, so that its shared memory is new, one after the other, but without anything
// that ThreadSanitizer would take for order between them.
void RunGrid(dim3 grid, dim3 block, size_t shared_bytes, Body body, const void* arguments) {
  constexpr size_t kAtOnce = 8;
  const std::vector<uint3> blocks = BlocksOf(grid);
  for (size_t begin = 0; begin < blocks.size(); begin += kAtOnce) {
    std::atomic<size_t> turn = begin;
    std::vector<std::thread> threads;
    for (size_t i = begin; i < std::min(begin + kAtOnce, blocks.size()); ++i) {
      threads.emplace_back([&, i] {
        for (size_t now = turn; now != i; now = turn) turn.wait(now);
        BlockRun run(block, shared_bytes);
        run.Run(blocks[i], grid, body, arguments);
        run.Join();
        turn = i + 1;
        turn.notify_all();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

#else

void RunGrid(dim3 grid, dim3 block, size_t shared_bytes, Body body, const void* arguments) {
  // Stacks are dear: the fibers of a thread's last block sizes are kept.
  thread_local std::map<std::tuple<unsigned, unsigned, unsigned, size_t>, std::unique_ptr<BlockRun> > kept;
  std::unique_ptr<BlockRun>& run = kept[{block.x, block.y, block.z, shared_bytes}];
  if (run == nullptr) run = std::make_unique<BlockRun>(block, shared_bytes);
  for (const uint3 index : BlocksOf(grid)) run->Run(index, grid, body, arguments);
}

#endif

bool Register(void* function, const Thunk& thunk) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  return registry().thunks.emplace(function, thunk).second;
}

std::vector<void*> KernelsNeverLaunched() {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  std::vector<void*> kernels;
  for (const auto& [function, thunk] : registry().thunks) {
    if (!*thunk.launched) kernels.push_back(function);
  }
  return kernels;
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
