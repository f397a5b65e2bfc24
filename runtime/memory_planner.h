// SPDX-License-Identifier: Apache-2.0
// Packs blocks of memory with known lifetimes into one region. Knows nothing of graphs: a lifetime is a set of
// positions on streams, and two blocks may share bytes only when every access of one happens before every access of the
// other, whatever the relative speed of the streams.
#ifndef ONNXTRAIN_RUNTIME_MEMORY_PLANNER_H_
#define ONNXTRAIN_RUNTIME_MEMORY_PLANNER_H_

#include <array>
#include <cstddef>
#include <vector>

namespace onnxtrain {

inline constexpr int kMaxStreams = 4;
// One position per stream; positions of a stream count up from 0, -1 means none.
using StreamPositions = std::array<int, kMaxStreams>;
inline constexpr StreamPositions kNowhere = {-1, -1, -1, -1};

struct Lifetime {
  size_t bytes = 0;
  StreamPositions last = kNowhere;         // last access on each stream
  StreamPositions over_before = kNowhere;  // what each stream has certainly finished when the first access begins
  int first_step = 0;                      // in issue order
  int last_step = 0;
};

// Every access of `first` happens before every access of `second`.
bool EndsBefore(const Lifetime& first, const Lifetime& second);

struct MemoryPlan {
  std::vector<size_t> offsets;  // one per lifetime, multiples of kMemoryAlignment
  size_t bytes = 0;
  size_t lower_bound = 0;  // most bytes alive at one step
};

inline constexpr size_t kMemoryAlignment = 256;

// Tries several greedy best-fit orders, then moves the blocks at the peak to the front while that helps; keeps the
// best. Deterministic. O(n^2) for n blocks.
MemoryPlan PlanMemory(const std::vector<Lifetime>& lifetimes);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_MEMORY_PLANNER_H_
