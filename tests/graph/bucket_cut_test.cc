// SPDX-License-Identifier: Apache-2.0
#include "graph/bucket_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

namespace onnxtrain {
namespace {

using ::testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<GradientRelease> Random(std::mt19937& random, int count, bool kinds) {
  std::vector<GradientRelease> gradients;
  double now = 0;
  for (int i = 0; i < count; ++i) {
    now += static_cast<double>(random() % 4);
    GradientRelease gradient{now, static_cast<int64_t>(random() % 50), 0, false};
    if (kinds) gradient.kind = static_cast<int>(random() % 4 == 0);
    if (kinds) gradient.apart = random() % 6 == 0;
    gradients.push_back(gradient);
  }
  return gradients;
}

LinkCost RandomLink(std::mt19937& random) {
  return {static_cast<double>(random() % 5), 0.05 * static_cast<double>(random() % 5)};
}

bool Allowed(const std::vector<GradientRelease>& gradients, const BucketRange& bucket) {
  for (int i = bucket.begin + 1; i < bucket.end; ++i) {
    if (gradients[i].kind != gradients[i - 1].kind || gradients[i].apart != gradients[i - 1].apart) return false;
  }
  return true;
}

// The best end of all cuts into exactly k buckets, by trying every cut; infinity where none is allowed.
std::vector<double> BestByCount(const std::vector<GradientRelease>& gradients, const LinkCost& link) {
  const int count = static_cast<int>(gradients.size());
  std::vector<double> best(gradients.size() + 1, kInfinity);
  for (unsigned mask = 0; mask < 1u << (count - 1); ++mask) {
    std::vector<BucketRange> buckets = {{0, 0}};
    for (int i = 0; i < count; ++i) {
      buckets.back().end = i + 1;
      if (i + 1 < count && (mask >> i & 1u) != 0) buckets.push_back({i + 1, i + 1});
    }
    if (!std::all_of(buckets.begin(), buckets.end(), [&](const auto& b) { return Allowed(gradients, b); })) continue;
    double& entry = best[buckets.size()];
    entry = std::min(entry, FinishOf(gradients, buckets, link));
  }
  return best;
}

TEST(BucketCut, IsTheOptimumOfAllCuts) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto gradients = Random(random, 1 + static_cast<int>(random() % 10), seed % 2 == 1);
    const LinkCost link = RandomLink(random);
    const std::vector<double> best = BestByCount(gradients, link);
    const double optimum = *std::min_element(best.begin(), best.end());
    const BucketCut cut = CutBuckets(gradients, link, {0.0, 0});
    EXPECT_NEAR(cut.optimum_us, optimum, 1e-9);
    EXPECT_NEAR(cut.finish_us, optimum, 1e-9);
    EXPECT_NEAR(best[cut.buckets.size()], optimum, 1e-9);
    for (size_t fewer = 0; fewer < cut.buckets.size(); ++fewer) EXPECT_GT(best[fewer], optimum);
    EXPECT_LE(cut.bound_us, cut.optimum_us + 1e-9);
  }
}

TEST(BucketCut, FewestBucketsWithinTheTolerance) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto gradients = Random(random, 1 + static_cast<int>(random() % 10), seed % 2 == 1);
    const LinkCost link = RandomLink(random);
    const double tolerance = 0.25 * static_cast<double>(random() % 4);
    const std::vector<double> best = BestByCount(gradients, link);
    const double optimum = *std::min_element(best.begin(), best.end());
    const double allowed = optimum + tolerance * (optimum - gradients.back().release_us) + 1e-9;
    const BucketCut cut = CutBuckets(gradients, link, {tolerance, 0});
    EXPECT_LE(cut.finish_us, allowed);
    for (size_t fewer = 0; fewer < cut.buckets.size(); ++fewer) EXPECT_GT(best[fewer], allowed - 2e-9);
  }
}

TEST(BucketCut, ForcedCount) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto gradients = Random(random, 1 + static_cast<int>(random() % 9), seed % 2 == 1);
    const LinkCost link = RandomLink(random);
    const std::vector<double> best = BestByCount(gradients, link);
    for (int count = 1; count <= 12; ++count) {
      const BucketCut cut = CutBuckets(gradients, link, {0.0, count});
      double expected = kInfinity;
      size_t fewest = 1;
      while (best[fewest] == kInfinity) ++fewest;
      const size_t limit = std::min(std::max(fewest, static_cast<size_t>(count)), gradients.size());
      for (size_t k = 1; k <= limit; ++k) expected = std::min(expected, best[k]);
      EXPECT_NEAR(cut.finish_us, expected, 1e-9) << count;
      EXPECT_LE(cut.buckets.size(), limit);
    }
  }
}

// Ends of all ways to put gradients into buckets, consecutive or not, in every order of the buckets.
double BestOfAllPartitions(const std::vector<GradientRelease>& gradients, const LinkCost& link) {
  const size_t count = gradients.size();
  std::vector<int> bucket_of(count, 0);
  double best = kInfinity;
  const std::function<void(size_t, int)> assign = [&](size_t next, int used) {
    if (next < count) {
      for (int bucket = 0; bucket <= used; ++bucket) {
        bucket_of[next] = bucket;
        assign(next + 1, std::max(used, bucket + 1));
      }
      return;
    }
    std::vector<int> order(static_cast<size_t>(used));
    std::iota(order.begin(), order.end(), 0);
    do {
      double finish = 0;
      for (const int bucket : order) {
        double release = 0;
        double bytes = 0;
        for (size_t i = 0; i < count; ++i) {
          if (bucket_of[i] != bucket) continue;
          release = std::max(release, gradients[i].release_us);
          bytes += static_cast<double>(gradients[i].bytes);
        }
        finish = std::max(finish, release) + link.latency_us + link.us_per_byte * bytes;
      }
      best = std::min(best, finish);
    } while (std::next_permutation(order.begin(), order.end()));
  };
  assign(0, 0);
  return best;
}

TEST(BucketCut, ConsecutiveBucketsAndTheBoundHoldForAllPartitions) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto gradients = Random(random, 1 + static_cast<int>(random() % 5), false);
    const LinkCost link = RandomLink(random);
    const double best = BestOfAllPartitions(gradients, link);
    EXPECT_NEAR(CutBuckets(gradients, link).optimum_us, best, 1e-9);
    EXPECT_LE(FinishBound(gradients, link), best + 1e-9);
  }
}

TEST(BucketCut, SolvesByHand) {
  // 10 us each plus 1 us of latency: apart they run from 10 to 21 and 21 to 32, together from 20 to 41.
  const std::vector<GradientRelease> gradients = {{10, 10, 0, false}, {20, 10, 0, false}};
  const BucketCut cut = CutBuckets(gradients, {1, 1});
  EXPECT_THAT(cut.buckets, ElementsAre(BucketRange{0, 1}, BucketRange{1, 2}));
  EXPECT_EQ(cut.finish_us, 32);
  EXPECT_EQ(cut.bound_us, 31);
  // A latency above the gain: one bucket.
  EXPECT_THAT(CutBuckets(gradients, {30, 1}).buckets, ElementsAre(BucketRange{0, 2}));
  EXPECT_TRUE(CutBuckets({}, {1, 1}).buckets.empty());
  EXPECT_EQ(CutBuckets({{5, 0, 0, false}}, {0, 0}).finish_us, 5);
}

TEST(BucketCut, LargeSequencesEndNearTheBound) {
  std::mt19937 random(7);
  for (const LinkCost link : {LinkCost{20, 1e-3}, LinkCost{0, 1e-3}, LinkCost{0, 0}}) {
    std::vector<GradientRelease> gradients;
    for (int i = 0; i < 1500; ++i) gradients.push_back({i * 10.0, static_cast<int64_t>(random() % 9000), 0, false});
    const BucketCut cut = CutBuckets(gradients, link);
    EXPECT_LE(cut.finish_us, cut.bound_us * 1.01);
    EXPECT_EQ(cut.buckets.front().begin, 0);
    EXPECT_EQ(cut.buckets.back().end, 1500);
    for (size_t i = 1; i < cut.buckets.size(); ++i) EXPECT_EQ(cut.buckets[i].begin, cut.buckets[i - 1].end);
  }
}

TEST(BucketCut, BySize) {
  const std::vector<GradientRelease> gradients = {{0, 4, 0, false}, {0, 4, 0, true},  {0, 9, 0, false},
                                                  {0, 0, 0, false}, {0, 4, 1, false}, {0, 4, 1, false}};
  EXPECT_THAT(CutBySize(gradients, kInfinity), ElementsAre(BucketRange{0, 4}, BucketRange{4, 6}));
  EXPECT_THAT(CutBySize(gradients, 8),
              ElementsAre(BucketRange{0, 2}, BucketRange{2, 3}, BucketRange{3, 4}, BucketRange{4, 6}));
  EXPECT_EQ(CutBySize(gradients, 1).size(), 6u);
  EXPECT_EQ(CutBySize(gradients, 0.001).size(), 6u);
  EXPECT_TRUE(CutBySize({}, 1).empty());
}

// Cuts of a sequence that `allowed` admits, one after the other.
void ForEachCut(const std::vector<GradientRelease>& gradients,
                const std::function<void(const std::vector<BucketRange>&)>& body) {
  const int count = static_cast<int>(gradients.size());
  for (unsigned mask = 0; mask < 1u << (count - 1); ++mask) {
    std::vector<BucketRange> buckets = {{0, 0}};
    for (int i = 0; i < count; ++i) {
      buckets.back().end = i + 1;
      if (i + 1 < count && (mask >> i & 1u) != 0) buckets.push_back({i + 1, i + 1});
    }
    if (std::all_of(buckets.begin(), buckets.end(), [&](const auto& b) { return Allowed(gradients, b); }))
      body(buckets);
  }
}

TEST(ShardedCut, IsSeldomAndLittleAboveTheBestOfAllCuts) {
  int worse = 0;
  double most = 0;
  constexpr unsigned kSeeds = 400;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    auto gradients = Random(random, 1 + static_cast<int>(random() % 10), seed % 2 == 1);
    // Forward uses the parameters in about the reverse order.
    double use = 0;
    for (size_t i = gradients.size(); i-- > 0;) gradients[i].first_use_us = use += static_cast<double>(random() % 4);
    if (!gradients.empty() && seed % 3 == 0) std::swap(gradients.front().first_use_us, gradients.back().first_use_us);
    const LinkCost reduce = RandomLink(random);
    const LinkCost gather = RandomLink(random);
    double best = kInfinity;
    ForEachCut(gradients, [&](const auto& buckets) {
      best = std::min(best, ShardedExposure(gradients, buckets, reduce, gather));
    });
    const BucketCut cut = CutShardedBuckets(gradients, reduce, gather, {0.0, 0});
    const double found = ShardedExposure(gradients, cut.buckets, reduce, gather);
    for (const BucketRange& bucket : cut.buckets) EXPECT_TRUE(Allowed(gradients, bucket));
    EXPECT_GE(found, best - 1e-9);
    if (found > best + 1e-6) ++worse;
    most = std::max(most, best > 0 ? found / best - 1 : 0);
  }
  EXPECT_LE(worse, static_cast<int>(kSeeds) / 50);
  EXPECT_LE(most, 0.1);
}

TEST(ShardedCut, CountsTheGathersAtTheStartOfTheStep) {
  // The tail alone would take one bucket; the node that reads the last parameter first would wait for all of them.
  std::vector<GradientRelease> gradients;
  for (int i = 0; i < 8; ++i) gradients.push_back({100.0 * i, 1000, 0, false, 100.0 * (7 - i)});
  const LinkCost link{1, 0.05};
  EXPECT_EQ(ShardedExposure(gradients, {{0, 8}}, link, link), 401 + 401);
  const BucketCut cut = CutShardedBuckets(gradients, link, link, {0.0, 0});
  EXPECT_EQ(ShardedExposure(gradients, cut.buckets, link, link), 51 + 51);
  EXPECT_EQ(cut.buckets.back(), (BucketRange{7, 8}));
}

}  // namespace
}  // namespace onnxtrain
