// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/prefetching_loader.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace onnxtrain {
namespace {

struct Slot {
  LoadedBatch batch;
  std::vector<std::vector<Tensor>> memory;  // [micro-batch][column], of the largest size
  Status status;
};

class ThreadedLoader final : public PrefetchingLoader {
 public:
  ThreadedLoader(BatchLoader loader, const PrefetchOptions& options)
      : loader_(std::move(loader)), options_(options), position_(options.start) {
    slots_.resize(static_cast<size_t>(options.depth) + 1);  // one more is in the user's hands
    for (Slot& slot : slots_) MakeSlot(slot);
    thread_ = std::thread([this] { Produce(); });
  }

  ~ThreadedLoader() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  StatusOr<const LoadedBatch*> Next() override {
    std::unique_lock lock(mutex_);
    RETURN_IF_ERROR(failed_);
    if (taken_ == options_.batches) return static_cast<const LoadedBatch*>(nullptr);
    if (taken_ > 0) {
      ++released_;
      changed_.notify_all();
    }
    changed_.wait(lock, [this] { return produced_ > taken_; });
    const Slot& slot = slots_[static_cast<size_t>(taken_) % slots_.size()];
    failed_ = slot.status;
    RETURN_IF_ERROR(failed_);
    ++taken_;
    return &slot.batch;
  }

 private:
  void MakeSlot(Slot& slot) {
    const int64_t batch = loader_.sampler().options().global_batch;
    const BatchLoaderOptions& split = loader_.options();
    for (int64_t local = 0; local < options_.local_ranks; ++local) {
      for (int64_t micro = 0; micro < split.accumulation; ++micro) {
        const int64_t rank = options_.first_rank + local;
        const int64_t samples = MicroBatchSlice(batch, split.ranks, rank, split.accumulation, micro).size;
        std::vector<Tensor>& tensors = slot.memory.emplace_back();
        for (size_t i = 0; i < loader_.columns().size(); ++i) tensors.emplace_back(loader_.Type(i, samples));
        slot.batch.micro_batches.emplace_back().feeds.resize(tensors.size());
      }
    }
    destinations_.resize(loader_.columns().size());
  }

  void Produce() {
    for (int64_t i = 0; i < options_.batches; ++i) {
      Slot& slot = slots_[static_cast<size_t>(i) % slots_.size()];
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || i - released_ < static_cast<int64_t>(slots_.size()); });
        if (stop_) return;
      }
      const Status status = FillSlot(slot);
      {
        const std::lock_guard lock(mutex_);
        slot.status = status;
        ++produced_;
      }
      changed_.notify_all();
      if (!status.ok()) return;
    }
  }

  Status FillSlot(Slot& slot) {
    slot.batch.position = position_;
    slot.batch.next = loader_.sampler().Next(position_);
    slot.batch.samples = loader_.sampler().BatchSize(position_);
    const int64_t accumulation = loader_.options().accumulation;
    for (size_t i = 0; i < slot.batch.micro_batches.size(); ++i) {
      const int64_t rank = options_.first_rank + static_cast<int64_t>(i) / accumulation;
      RETURN_IF_ERROR(FillMicroBatch(slot, i, rank, static_cast<int64_t>(i) % accumulation));
    }
    position_ = slot.batch.next;
    return OkStatus();
  }

  Status FillMicroBatch(Slot& slot, size_t index, int64_t rank, int64_t micro) {
    LoadedMicroBatch& micro_batch = slot.batch.micro_batches[index];
    micro_batch.samples = loader_.MicroBatch(position_, rank, micro).size;
    for (size_t i = 0; i < destinations_.size(); ++i) {
      const TensorType type = loader_.Type(i, micro_batch.samples);
      const std::span<std::byte> bytes(slot.memory[index][i].data(), type.bytes());
      micro_batch.feeds[i] = {type, bytes};
      destinations_[i] = {type, bytes};
    }
    return loader_.Fill(position_, rank, micro, destinations_);
  }

  // Of the thread alone.
  BatchLoader loader_;
  const PrefetchOptions options_;
  SamplerPosition position_;
  std::vector<BatchDestination> destinations_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // A slot's content belongs to the thread until it is counted in produced_, then to the user until counted in
  // released_. The counters are guarded by mutex_.
  std::vector<Slot> slots_;
  int64_t produced_ = 0;
  int64_t taken_ = 0;
  int64_t released_ = 0;
  bool stop_ = false;
  Status failed_;
  std::thread thread_;
};

}  // namespace

StatusOr<std::unique_ptr<PrefetchingLoader>> PrefetchingLoader::Create(BatchLoader loader,
                                                                       const PrefetchOptions& options) {
  CHECK(options.depth > 0 && options.batches >= 0 && options.local_ranks > 0);
  CHECK(options.first_rank >= 0 && options.first_rank + options.local_ranks <= loader.options().ranks);
  try {
    return std::unique_ptr<PrefetchingLoader>(new ThreadedLoader(std::move(loader), options));
  } catch (const std::bad_alloc&) {
    return ResourceExhaustedError("no memory for " + std::to_string(options.depth + 1) + " batches of data");
  } catch (const std::system_error& error) {
    return InternalError(std::string("cannot start the data thread: ") + error.what());
  }
}

}  // namespace onnxtrain
