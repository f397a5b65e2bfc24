// SPDX-License-Identifier: Apache-2.0
#include "graph/bucket_cut.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "graph/status.h"

namespace onnxtrain {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The sequence with running sums; position i stands for "the first i gradients".
struct Sequence {
  std::vector<double> release;   // of gradient i-1, never falling
  std::vector<double> bytes;     // of the first i gradients
  std::vector<int> first_start;  // smallest j such that gradients j .. i-1 may share a bucket
};

bool MayShare(const GradientRelease& a, const GradientRelease& b) { return a.kind == b.kind && a.apart == b.apart; }

Sequence MakeSequence(const std::vector<GradientRelease>& gradients) {
  Sequence sequence{{0.0}, {0.0}, {0}};
  for (size_t i = 0; i < gradients.size(); ++i) {
    CHECK(gradients[i].release_us >= 0 && gradients[i].bytes >= 0);
    sequence.release.push_back(std::max(sequence.release.back(), gradients[i].release_us));
    sequence.bytes.push_back(sequence.bytes.back() + static_cast<double>(gradients[i].bytes));
    const bool joins = i > 0 && MayShare(gradients[i - 1], gradients[i]);
    sequence.first_start.push_back(joins ? sequence.first_start.back() : static_cast<int>(i));
  }
  return sequence;
}

// One round of the recurrence: end[i] and the best last cut from[i], where the buckets before the last one end at
// before[j]. `before` may be `end` itself, which is then filled in step with its use; it never falls with j.
//
// Of the cuts j at which the channel is free by r_i the latest is best: the bucket then starts at r_i and is smallest.
// Among the others before[j] - b * bytes[j] decides, and both their borders only move right: a sliding minimum.
void Relax(const Sequence& sequence, const LinkCost& link, const std::vector<double>& before, std::vector<double>& end,
           std::vector<int>& from) {
  std::deque<int> waiting;  // candidates by rising key
  int free = -1;            // the latest cut at which the channel is free in time
  const auto key = [&](int j) {
    return before[static_cast<size_t>(j)] - link.us_per_byte * sequence.bytes[static_cast<size_t>(j)];
  };
  for (size_t i = 1; i < sequence.release.size(); ++i) {
    const int newest = static_cast<int>(i) - 1;
    while (!waiting.empty() && key(waiting.back()) >= key(newest)) waiting.pop_back();
    waiting.push_back(newest);
    while (free < newest && before[static_cast<size_t>(free + 1)] <= sequence.release[i]) ++free;
    const int border = std::max(free + 1, sequence.first_start[i]);
    while (!waiting.empty() && waiting.front() < border) waiting.pop_front();

    end[i] = kNever;
    from[i] = -1;
    const auto consider = [&](int j) {
      const double size = sequence.bytes[i] - sequence.bytes[static_cast<size_t>(j)];
      const double start = std::max(before[static_cast<size_t>(j)], sequence.release[i]);
      const double finish = start + link.latency_us + link.us_per_byte * size;
      if (finish < end[i]) {
        end[i] = finish;
        from[i] = j;
      }
    };
    if (free >= sequence.first_start[i]) consider(free);
    if (!waiting.empty()) consider(waiting.front());
  }
}

std::vector<BucketRange> Collect(const std::vector<std::vector<int>>& from, int count) {
  std::vector<BucketRange> buckets;
  int end = static_cast<int>(from[0].size()) - 1;
  for (size_t round = from.size(); end > 0 && round-- > 0;) {
    const int begin = from[round][static_cast<size_t>(end)];
    buckets.push_back({begin, end});
    end = begin;
  }
  CHECK(end == 0 && static_cast<int>(buckets.size()) <= count);
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

// Adds buckets until `enough(rounds, end of the last)`.
template <typename Enough>
std::vector<BucketRange> FewestBuckets(const Sequence& sequence, const LinkCost& link, Enough enough) {
  const size_t positions = sequence.release.size();
  std::vector<double> before(positions, kNever);  // with at most `round` buckets
  before[0] = 0;
  std::vector<std::vector<int>> from;
  for (int round = 1;; ++round) {
    std::vector<double> end(positions, kNever);
    std::vector<int> last(positions, -1);
    end[0] = 0;
    Relax(sequence, link, before, end, last);
    from.push_back(std::move(last));
    if (enough(round, end.back())) return Collect(from, round);
    before = std::move(end);
  }
}

int FewestPossible(const Sequence& sequence) {
  int count = 0;
  for (size_t i = sequence.first_start.size() - 1; i > 0; i = static_cast<size_t>(sequence.first_start[i])) ++count;
  return count;
}

}  // namespace

LinkCost LinkCostOf(const CostModel& model) {
  LinkCost cost;
  cost.latency_us = CollectiveMicroseconds(0, model);
  cost.us_per_byte = (CollectiveMicroseconds(1e9, model) - cost.latency_us) / 1e9;
  return cost;
}

double FinishOf(const std::vector<GradientRelease>& gradients, const std::vector<BucketRange>& buckets,
                const LinkCost& link) {
  const Sequence sequence = MakeSequence(gradients);
  double finish = 0;
  for (const BucketRange& bucket : buckets) {
    const auto end = static_cast<size_t>(bucket.end);
    const double size = sequence.bytes[end] - sequence.bytes[static_cast<size_t>(bucket.begin)];
    finish = std::max(finish, sequence.release[end]) + link.latency_us + link.us_per_byte * size;
  }
  return finish;
}

double FinishBound(const std::vector<GradientRelease>& gradients, const LinkCost& link) {
  const Sequence sequence = MakeSequence(gradients);
  double bound = 0;
  for (size_t i = 1; i < sequence.release.size(); ++i) {
    const double rest = sequence.bytes.back() - sequence.bytes[i - 1];
    bound = std::max(bound, sequence.release[i] + link.latency_us + link.us_per_byte * rest);
  }
  return bound;
}

BucketCut CutBuckets(const std::vector<GradientRelease>& gradients, const LinkCost& link,
                     const BucketCutOptions& options) {
  CHECK(link.latency_us >= 0 && link.us_per_byte >= 0 && options.tolerance >= 0 && options.count >= 0);
  BucketCut cut;
  if (gradients.empty()) return cut;
  const Sequence sequence = MakeSequence(gradients);
  std::vector<double> best(sequence.release.size(), 0.0);
  std::vector<int> from(sequence.release.size(), -1);
  Relax(sequence, link, best, best, from);
  cut.optimum_us = best.back();
  cut.bound_us = FinishBound(gradients, link);
  // The last term: sums in another order may differ in the last bits.
  const double allowed =
      cut.optimum_us + options.tolerance * (cut.optimum_us - sequence.release.back()) + 1e-12 * cut.optimum_us;
  const int wanted = std::max(options.count, FewestPossible(sequence));
  cut.buckets = FewestBuckets(sequence, link, [&](int round, double finish) {
    const bool all = round == static_cast<int>(gradients.size());
    return options.count > 0 ? round == wanted || all : finish <= allowed || all;
  });
  cut.finish_us = FinishOf(gradients, cut.buckets, link);
  return cut;
}

std::vector<BucketRange> CutBySize(const std::vector<GradientRelease>& gradients, double cap_bytes) {
  std::vector<BucketRange> buckets;
  double size = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const auto bytes = static_cast<double>(gradients[i].bytes);
    if (i == 0 || gradients[i].kind != gradients[i - 1].kind || size + bytes > cap_bytes) {
      buckets.push_back({static_cast<int>(i), static_cast<int>(i)});
      size = 0;
    }
    buckets.back().end = static_cast<int>(i) + 1;
    size += bytes;
  }
  return buckets;
}

}  // namespace onnxtrain
