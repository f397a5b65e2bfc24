// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

Sampler Make(int64_t samples, int64_t batch, bool shuffle = true, bool drop_last = false, uint64_t seed = 1) {
  auto sampler = Sampler::Create({samples, batch, shuffle, seed, drop_last});
  CHECK(sampler.ok());
  return std::move(sampler).value();
}

std::vector<int64_t> Batch(Sampler& sampler, SamplerPosition position) {
  std::vector<int64_t> samples;
  sampler.Batch(position, samples);
  return samples;
}

TEST(SliceTest, SlicesCoverTheWholeInOrder) {
  for (int64_t count = 0; count <= 40; ++count) {
    for (int64_t parts = 1; parts <= 9; ++parts) {
      int64_t at = 0;
      for (int64_t i = 0; i < parts; ++i) {
        const Slice slice = SliceOf(count, parts, i);
        EXPECT_EQ(slice.begin, at);
        EXPECT_EQ(slice.size, count / parts + (i < count % parts ? 1 : 0));
        at += slice.size;
      }
      EXPECT_EQ(at, count);
    }
  }
}

// Micro-batches of ranks cover the global batch once, in order, also where some are empty.
TEST(SliceTest, MicroBatchesCoverTheBatch) {
  for (int64_t batch : {0, 1, 2, 7, 16, 33}) {
    for (int64_t ranks : {1, 2, 3, 5, 8}) {
      for (int64_t accumulation : {1, 2, 3, 4}) {
        int64_t at = 0;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          for (int64_t micro = 0; micro < accumulation; ++micro) {
            const Slice slice = MicroBatchSlice(batch, ranks, rank, accumulation, micro);
            EXPECT_EQ(slice.begin, at);
            at += slice.size;
          }
        }
        EXPECT_EQ(at, batch);
      }
    }
  }
}

TEST(SamplerTest, ShufflingIsAPermutationThatDependsOnSeedAndEpoch) {
  for (int64_t samples : {1, 2, 3, 100, 1001}) {
    auto order = ShuffledOrder(samples, 7, 3);
    EXPECT_EQ(order, ShuffledOrder(samples, 7, 3));
    if (samples >= 100) {
      EXPECT_NE(order, ShuffledOrder(samples, 7, 4));
      EXPECT_NE(order, ShuffledOrder(samples, 8, 3));
    }
    std::sort(order.begin(), order.end());
    std::vector<int64_t> all(static_cast<size_t>(samples));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
  // Resumed runs on any machine depend on this order.
  EXPECT_EQ(ShuffledOrder(8, 0, 0), (std::vector<int64_t>{7, 5, 1, 6, 0, 4, 3, 2}));
}

// Each of the 24 orders of four samples within six standard deviations of its expected frequency.
TEST(SamplerTest, OrdersAreEquallyLikely) {
  std::vector<int> counts(256, 0);
  constexpr int kDraws = 24000;
  for (int epoch = 0; epoch < kDraws; ++epoch) {
    const auto order = ShuffledOrder(4, 99, epoch);
    ++counts[static_cast<size_t>(order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3])];
  }
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 0), 256 - 24);
  for (int count : counts) {
    EXPECT_TRUE(count == 0 || std::abs(count - kDraws / 24) < 6 * 31) << count;
  }
}

TEST(SamplerTest, WithoutShufflingStepKTakesTheKthBatch) {
  Sampler sampler = Make(10, 4, false);
  EXPECT_EQ(sampler.batches_per_epoch(), 3);
  EXPECT_EQ(Batch(sampler, sampler.PositionOfStep(1)), (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(Batch(sampler, sampler.PositionOfStep(2)), (std::vector<int64_t>{8, 9}));
  EXPECT_EQ(Batch(sampler, sampler.PositionOfStep(3)), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(SamplerTest, DropLastLeavesOutThePartialBatch) {
  Sampler sampler = Make(10, 4, true, true);
  EXPECT_EQ(sampler.batches_per_epoch(), 2);
  SamplerPosition position;
  for (int step = 0; step < 6; ++step) {
    EXPECT_EQ(position, sampler.PositionOfStep(step));
    EXPECT_EQ(Batch(sampler, position).size(), 4u);
    position = sampler.Next(position);
  }
  EXPECT_DATA_ERROR(Sampler::Create({3, 4, true, 0, true}),
                    "the data gives no step: 3 samples, a global batch needs 4");
  EXPECT_DATA_ERROR(Sampler::Create({0, 4, true, 0, false}), "the data gives no step");
  EXPECT_OK(Sampler::Create({3, 4, true, 0, false}));
}

TEST(SamplerTest, AnEpochUsesEverySampleOnce) {
  for (int64_t samples : {1, 5, 16, 17}) {
    for (int64_t batch : {1, 4, 16, 100}) {
      Sampler sampler = Make(samples, batch);
      std::vector<int64_t> seen;
      SamplerPosition position;
      while (position.epoch == 0) {
        const auto taken = Batch(sampler, position);
        EXPECT_EQ(static_cast<int64_t>(taken.size()), sampler.BatchSize(position));
        seen.insert(seen.end(), taken.begin(), taken.end());
        position = sampler.Next(position);
      }
      EXPECT_EQ(seen, ShuffledOrder(samples, 1, 0));
      EXPECT_EQ(position, (SamplerPosition{1, 0}));
    }
  }
}

TEST(SamplerTest, AResumedSamplerGoesOnExactly) {
  Sampler whole = Make(37, 5);
  SamplerPosition position;
  for (int step = 0; step < 30; ++step) {
    Sampler resumed = Make(37, 5);  // knows nothing but the position
    EXPECT_EQ(Batch(resumed, position), Batch(whole, position));
    EXPECT_EQ(Batch(resumed, whole.PositionOfStep(step)), Batch(whole, position));
    position = whole.Next(position);
  }
}

// Another batch size goes on at the same sample.
TEST(SamplerTest, APositionOutlivesAChangeOfBatchSize) {
  const auto order = ShuffledOrder(20, 1, 0);
  Sampler other = Make(20, 6);
  EXPECT_EQ(Batch(other, {0, 15}), std::vector<int64_t>(order.begin() + 15, order.end()));
  EXPECT_EQ(other.Next({0, 15}), (SamplerPosition{1, 0}));
  Sampler whole_only = Make(20, 6, true, true);
  EXPECT_EQ(Batch(whole_only, {0, 15}), Batch(whole_only, {1, 0}));
}

}  // namespace
}  // namespace onnxtrain
