// SPDX-License-Identifier: Apache-2.0
// Which samples make up each global batch. The order depends on seed and epoch alone, never on the number of ranks, and
// a position in it is two numbers, so that a resumed run goes on exactly where it stopped.
#ifndef ONNXTRAIN_RUNTIME_DATA_SAMPLER_H_
#define ONNXTRAIN_RUNTIME_DATA_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "graph/status.h"

namespace onnxtrain {

// The `index`-th of `parts` contiguous slices of `count` things: the first count mod parts slices take one more.
struct Slice {
  int64_t begin = 0;
  int64_t size = 0;
  bool operator==(const Slice&) const = default;
};
Slice SliceOf(int64_t count, int64_t parts, int64_t index);
// Micro-batch `micro` of `accumulation` within the slice of `rank`, counted from the start of the global batch.
Slice MicroBatchSlice(int64_t batch, int64_t ranks, int64_t rank, int64_t accumulation, int64_t micro);

// The order of an epoch: a uniformly drawn permutation of 0..samples-1 (Fisher-Yates, its draws a hash of seed, epoch
// and counter; the same on every machine).
std::vector<int64_t> ShuffledOrder(int64_t samples, uint64_t seed, int64_t epoch);

struct SamplerOptions {
  int64_t samples = 0;
  int64_t global_batch = 0;
  bool shuffle = true;
  uint64_t seed = 0;
  // Leave out the last, partial batch of an epoch.
  bool drop_last = false;
};

struct SamplerPosition {
  int64_t epoch = 0;
  int64_t offset = 0;  // samples of this epoch already used
  bool operator==(const SamplerPosition&) const = default;
};

// Not thread-safe: keeps the order of the epoch last asked for (8 bytes a sample when shuffling).
class Sampler {
 public:
  // kInvalidData when an epoch gives no batch.
  static StatusOr<Sampler> Create(const SamplerOptions& options);

  const SamplerOptions& options() const { return options_; }
  int64_t batches_per_epoch() const { return batches_per_epoch_; }
  // Samples used in an epoch: all, or whole batches with drop_last.
  int64_t samples_per_epoch() const { return samples_per_epoch_; }

  // Where step `step` of an uninterrupted run begins, from 0.
  SamplerPosition PositionOfStep(int64_t step) const;
  // Size of the batch at a position and what follows it. An offset past the epoch (another batch size wrote it) is the
  // start of the next one.
  int64_t BatchSize(SamplerPosition position) const;
  SamplerPosition Next(SamplerPosition position) const;
  // The samples of that batch, in order.
  void Batch(SamplerPosition position, std::vector<int64_t>& samples);

 private:
  Sampler() = default;
  SamplerPosition Normalized(SamplerPosition position) const;

  SamplerOptions options_;
  int64_t batches_per_epoch_ = 0;
  int64_t samples_per_epoch_ = 0;
  int64_t order_epoch_ = -1;
  std::vector<int64_t> order_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_SAMPLER_H_
