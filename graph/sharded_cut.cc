// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <set>

#include "graph/bucket_cut.h"
#include "graph/status.h"

namespace onnxtrain {
namespace {

// A cut as the places where buckets end, without the last.
using Borders = std::set<int>;

class CutSearch {
 public:
  CutSearch(const std::vector<GradientRelease>& gradients, const LinkCost& reduce, const LinkCost& gather)
      : gradients_(gradients), reduce_(reduce), gather_(gather) {
    for (int i = 1; i < size(); ++i) {
      const GradientRelease& a = gradients[static_cast<size_t>(i - 1)];
      const GradientRelease& b = gradients[static_cast<size_t>(i)];
      if (a.kind != b.kind || a.apart != b.apart) forced_.insert(i);
    }
  }

  int size() const { return static_cast<int>(gradients_.size()); }

  std::vector<BucketRange> RangesOf(const Borders& borders) const {
    std::vector<BucketRange> ranges;
    int begin = 0;
    for (const int border : borders) {
      ranges.push_back({begin, border});
      begin = border;
    }
    ranges.push_back({begin, size()});
    return ranges;
  }

  static Borders BordersOf(const std::vector<BucketRange>& ranges) {
    Borders borders;
    for (size_t i = 0; i + 1 < ranges.size(); ++i) borders.insert(ranges[i].end);
    return borders;
  }

  double Cost(const Borders& borders) const { return ShardedExposure(gradients_, RangesOf(borders), reduce_, gather_); }

  // Follows the best single change until none helps by more than rounding.
  Borders Improve(Borders borders) const {
    double cost = Cost(borders);
    while (true) {
      Borders best = borders;
      double least = cost - 1e-9 * (1 + cost);
      const auto consider = [&](Borders changed) {
        const double changed_cost = Cost(changed);
        if (changed_cost >= least) return;
        least = changed_cost;
        best = std::move(changed);
      };
      for (int place = 1; place < size(); ++place) ForEachChange(borders, place, consider);
      if (best == borders) return borders;
      borders = std::move(best);
      cost = least;
    }
  }

  // Joins buckets as long as the exposure stays within `allowed`, always where that costs least.
  Borders Fewest(Borders borders, double allowed) const {
    while (true) {
      Borders best = borders;
      double least = allowed;
      for (const int border : borders) {
        if (forced_.count(border) != 0) continue;
        Borders changed = borders;
        changed.erase(border);
        const double changed_cost = Cost(changed);
        if (changed_cost > least) continue;
        least = changed_cost;
        best = std::move(changed);
      }
      if (best == borders) return borders;
      borders = std::move(best);
    }
  }

 private:
  // A border more or less at `place`, or one moved to its neighbours.
  template <typename Consider>
  void ForEachChange(const Borders& borders, int place, const Consider& consider) const {
    if (borders.count(place) == 0) {
      Borders changed = borders;
      changed.insert(place);
      return consider(std::move(changed));
    }
    if (forced_.count(place) != 0) return;
    Borders without = borders;
    without.erase(place);
    consider(without);
    for (const int moved : {place - 1, place + 1}) {
      if (moved < 1 || moved >= size() || without.count(moved) != 0) continue;
      Borders changed = without;
      changed.insert(moved);
      consider(std::move(changed));
    }
  }

  const std::vector<GradientRelease>& gradients_;
  const LinkCost& reduce_;
  const LinkCost& gather_;
  Borders forced_;
};

}  // namespace

double ShardedExposure(const std::vector<GradientRelease>& gradients, const std::vector<BucketRange>& buckets,
                       const LinkCost& reduce, const LinkCost& gather) {
  struct Gathered {
    double first_use_us;
    double bytes;
  };
  std::vector<Gathered> gathered;
  double last_release = 0;
  for (const BucketRange& bucket : buckets) {
    Gathered one{gradients[static_cast<size_t>(bucket.begin)].first_use_us, 0};
    for (int i = bucket.begin; i < bucket.end; ++i) {
      const GradientRelease& gradient = gradients[static_cast<size_t>(i)];
      one.first_use_us = std::min(one.first_use_us, gradient.first_use_us);
      one.bytes += static_cast<double>(gradient.bytes);
      last_release = std::max(last_release, gradient.release_us);
    }
    gathered.push_back(one);
  }
  std::stable_sort(gathered.begin(), gathered.end(),
                   [](const Gathered& a, const Gathered& b) { return a.first_use_us < b.first_use_us; });
  double link = 0;
  double head = 0;
  for (const Gathered& one : gathered) {
    link += gather.latency_us + gather.us_per_byte * one.bytes;
    head = std::max(head, link - one.first_use_us);
  }
  return head + FinishOf(gradients, buckets, reduce) - last_release;
}

BucketCut CutShardedBuckets(const std::vector<GradientRelease>& gradients, const LinkCost& reduce,
                            const LinkCost& gather, const BucketCutOptions& options) {
  BucketCut cut = CutBuckets(gradients, reduce, options);
  if (gradients.empty() || options.count > 0) return cut;
  const CutSearch search(gradients, reduce, gather);
  Borders best = search.Improve(CutSearch::BordersOf(cut.buckets));
  double least = search.Cost(best);
  // Starts: the best tails with 1, 2, 4, ... buckets, and each gradient alone.
  for (int count = 1; count < 2 * search.size(); count *= 2) {
    BucketCutOptions into = options;
    into.count = std::min(count, search.size());
    const Borders borders = search.Improve(CutSearch::BordersOf(CutBuckets(gradients, reduce, into).buckets));
    const double cost = search.Cost(borders);
    if (cost >= least) continue;
    least = cost;
    best = borders;
  }
  best = search.Fewest(best, least * (1 + options.tolerance));
  cut.buckets = search.RangesOf(best);
  cut.finish_us = FinishOf(gradients, cut.buckets, reduce);
  return cut;
}

}  // namespace onnxtrain
