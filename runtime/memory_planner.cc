// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_planner.h"

#include <algorithm>
#include <cstdint>

namespace onnxtrain {
namespace {

size_t Padded(size_t bytes) { return (bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment; }

size_t LowerBound(const std::vector<Lifetime>& lifetimes) {
  int steps = 0;
  for (const Lifetime& life : lifetimes) steps = std::max(steps, life.last_step + 1);
  std::vector<int64_t> change(static_cast<size_t>(steps) + 1, 0);
  for (const Lifetime& life : lifetimes) {
    if (life.bytes == 0) continue;
    change[static_cast<size_t>(life.first_step)] += static_cast<int64_t>(Padded(life.bytes));
    change[static_cast<size_t>(life.last_step) + 1] -= static_cast<int64_t>(Padded(life.bytes));
  }
  int64_t live = 0;
  int64_t most = 0;
  for (int64_t difference : change) most = std::max(most, live += difference);
  return static_cast<size_t>(most);
}

// One greedy run: blocks in a given order, each into the smallest gap that fits between the conflicting blocks below
// it.
class Packing {
 public:
  explicit Packing(const std::vector<Lifetime>& lifetimes) : lifetimes_(lifetimes) {}

  MemoryPlan Run(const std::vector<int>& order) {
    by_offset_.clear();
    plan_ = MemoryPlan{std::vector<size_t>(lifetimes_.size(), 0), 0, 0};
    for (int block : order) Place(block);
    return plan_;
  }

 private:
  const Lifetime& life(int block) const { return lifetimes_[static_cast<size_t>(block)]; }
  size_t& offset(int block) { return plan_.offsets[static_cast<size_t>(block)]; }

  // What happens before is issued before, so one direction is enough.
  bool Conflict(int a, int b) const {
    const Lifetime& first = life(a).last_step < life(b).first_step ? life(a) : life(b);
    const Lifetime& second = &first == &life(a) ? life(b) : life(a);
    return first.last_step >= second.first_step || !EndsBefore(first, second);
  }

  void Place(int block) {
    const size_t bytes = Padded(life(block).bytes);
    size_t best = SIZE_MAX;
    size_t best_gap = SIZE_MAX;
    size_t top = 0;  // end of the conflicting blocks seen so far
    for (int other : by_offset_) {
      if (best != SIZE_MAX && offset(other) >= plan_.bytes) break;
      if (!Conflict(block, other)) continue;
      const size_t begin = offset(other);
      if (begin >= top + bytes && begin - top < best_gap) {
        best = top;
        best_gap = begin - top;
      }
      top = std::max(top, begin + Padded(life(other).bytes));
    }
    offset(block) = best == SIZE_MAX ? top : best;
    plan_.bytes = std::max(plan_.bytes, offset(block) + bytes);
    const auto place = std::upper_bound(by_offset_.begin(), by_offset_.end(), offset(block),
                                        [this](size_t value, int other) { return value < offset(other); });
    by_offset_.insert(place, block);
  }

  const std::vector<Lifetime>& lifetimes_;
  std::vector<int> by_offset_;
  MemoryPlan plan_;
};

template <typename Key>
std::vector<int> OrderBy(std::vector<int> order, Key key) {
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) > key(b); });
  return order;
}

// Blocks that end at the top of the region go to the front of the order, one step of a hill climb.
std::vector<int> PeakFirst(const std::vector<int>& order, const MemoryPlan& plan,
                           const std::vector<Lifetime>& lifetimes) {
  std::vector<int> next = order;
  std::stable_partition(next.begin(), next.end(), [&](int block) {
    const size_t i = static_cast<size_t>(block);
    return plan.offsets[i] + Padded(lifetimes[i].bytes) == plan.bytes;
  });
  return next;
}

bool CloseTo(size_t bytes, size_t bound) { return bytes <= bound + bound / 200; }

}  // namespace

bool EndsBefore(const Lifetime& first, const Lifetime& second) {
  for (size_t stream = 0; stream < kMaxStreams; ++stream) {
    if (first.last[stream] > second.over_before[stream]) return false;
  }
  return true;
}

MemoryPlan PlanMemory(const std::vector<Lifetime>& lifetimes) {
  // Pairs of blocks that may be compared: some tens of milliseconds, whatever the size of the graph.
  constexpr size_t kEffort = 20'000'000;
  constexpr size_t kMostRuns = 48;
  std::vector<int> blocks;
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    if (lifetimes[i].bytes != 0) blocks.push_back(static_cast<int>(i));
  }
  const size_t count = blocks.size();
  const auto life = [&](int block) -> const Lifetime& { return lifetimes[static_cast<size_t>(block)]; };
  const auto span = [&](int block) { return life(block).last_step - life(block).first_step; };
  const std::vector<std::vector<int>> orders = {
      OrderBy(blocks, [&](int b) { return life(b).bytes; }),
      OrderBy(blocks, [&](int b) { return std::pair(span(b), life(b).bytes); }),
      OrderBy(blocks, [&](int b) { return static_cast<double>(life(b).bytes) * (span(b) + 1); }),
      OrderBy(blocks, [&](int b) { return -life(b).first_step; }),
  };
  const size_t bound = LowerBound(lifetimes);
  Packing packing(lifetimes);
  MemoryPlan best{std::vector<size_t>(lifetimes.size(), 0), count == 0 ? 0 : SIZE_MAX, 0};
  const size_t runs = std::clamp(kEffort / (count * count + 1), orders.size(), kMostRuns) / orders.size();
  for (std::vector<int> order : orders) {
    for (size_t climb = 0; climb < runs && !CloseTo(best.bytes, bound); ++climb) {
      MemoryPlan plan = packing.Run(order);
      std::vector<int> next = PeakFirst(order, plan, lifetimes);
      if (plan.bytes < best.bytes) best = std::move(plan);
      if (next == order) break;
      order = std::move(next);
    }
  }
  best.lower_bound = bound;
  return best;
}

}  // namespace onnxtrain
