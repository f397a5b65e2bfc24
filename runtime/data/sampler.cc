// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/sampler.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace onnxtrain {
namespace {

// Finalizer of splitmix64 (Steele, Lea, Flood 2014): every input bit changes every output bit.
uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// A draw from 0..bound-1 by the upper half of a product; the bias is below bound / 2^64.
int64_t Draw(uint64_t random, int64_t bound) {
  return static_cast<int64_t>((static_cast<unsigned __int128>(random) * static_cast<uint64_t>(bound)) >> 64);
}

}  // namespace

Slice SliceOf(int64_t count, int64_t parts, int64_t index) {
  CHECK(count >= 0 && parts > 0 && index >= 0 && index < parts);
  const int64_t share = count / parts;
  const int64_t larger = count % parts;
  return {index * share + std::min(index, larger), share + (index < larger ? 1 : 0)};
}

Slice MicroBatchSlice(int64_t batch, int64_t ranks, int64_t rank, int64_t accumulation, int64_t micro) {
  const Slice of_rank = SliceOf(batch, ranks, rank);
  Slice slice = SliceOf(of_rank.size, accumulation, micro);
  slice.begin += of_rank.begin;
  return slice;
}

std::vector<int64_t> ShuffledOrder(int64_t samples, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  const uint64_t key = Mix(Mix(seed) ^ static_cast<uint64_t>(epoch));
  for (int64_t i = samples - 1; i > 0; --i) {
    const int64_t other = Draw(Mix(key + static_cast<uint64_t>(i)), i + 1);
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(other)]);
  }
  return order;
}

StatusOr<Sampler> Sampler::Create(const SamplerOptions& options) {
  CHECK(options.global_batch > 0 && options.samples >= 0);
  Sampler sampler;
  sampler.options_ = options;
  const int64_t whole = options.samples / options.global_batch;
  const bool partial = options.samples % options.global_batch != 0 && !options.drop_last;
  sampler.batches_per_epoch_ = whole + (partial ? 1 : 0);
  sampler.samples_per_epoch_ = partial ? options.samples : whole * options.global_batch;
  if (sampler.batches_per_epoch_ > 0) return sampler;
  return InvalidDataError("the data gives no step: " + std::to_string(options.samples) +
                          " samples, a global batch needs " + std::to_string(options.global_batch) +
                          "; use a smaller batch");
}

SamplerPosition Sampler::PositionOfStep(int64_t step) const {
  CHECK(step >= 0);
  return {step / batches_per_epoch_, step % batches_per_epoch_ * options_.global_batch};
}

SamplerPosition Sampler::Normalized(SamplerPosition position) const {
  CHECK(position.epoch >= 0 && position.offset >= 0);
  const bool too_few = options_.drop_last && position.offset + options_.global_batch > options_.samples;
  if (position.offset >= samples_per_epoch_ || too_few) return {position.epoch + 1, 0};
  return position;
}

int64_t Sampler::BatchSize(SamplerPosition position) const {
  return std::min(options_.global_batch, options_.samples - Normalized(position).offset);
}

SamplerPosition Sampler::Next(SamplerPosition position) const {
  position = Normalized(position);
  position.offset += BatchSize(position);
  return Normalized(position);
}

void Sampler::Batch(SamplerPosition position, std::vector<int64_t>& samples) {
  position = Normalized(position);
  samples.resize(static_cast<size_t>(BatchSize(position)));
  if (!options_.shuffle) {
    std::iota(samples.begin(), samples.end(), position.offset);
    return;
  }
  if (order_epoch_ != position.epoch) {
    order_ = ShuffledOrder(options_.samples, options_.seed, position.epoch);
    order_epoch_ = position.epoch;
  }
  std::copy_n(order_.begin() + position.offset, samples.size(), samples.begin());
}

}  // namespace onnxtrain
