// SPDX-License-Identifier: Apache-2.0
#include "runtime/hazard_map.h"

#include <algorithm>
#include <iterator>

namespace onnxtrain {

void HazardMap::Split(size_t at) {
  auto after = segments_.lower_bound(at);
  if (after == segments_.begin()) return;
  auto segment = std::prev(after);
  if (segment->second.end <= at) return;
  Segment right = segment->second;
  segment->second.end = at;
  segments_.emplace_hint(after, at, std::move(right));
}

void HazardMap::Read(size_t begin, size_t end, int task, std::vector<int>& dependencies) {
  if (begin == end) return;
  Split(begin);
  Split(end);
  size_t at = begin;
  for (auto segment = segments_.lower_bound(begin); at < end;) {
    if (segment == segments_.end() || segment->first > at) {  // nobody has touched these bytes yet
      const size_t next = segment == segments_.end() ? end : std::min(end, segment->first);
      segments_.emplace_hint(segment, at, Segment{next, -1, {task}});
      at = next;
      continue;
    }
    if (segment->second.writer >= 0) dependencies.push_back(segment->second.writer);
    if (segment->second.readers.empty() || segment->second.readers.back() != task) {
      segment->second.readers.push_back(task);
    }
    at = segment->second.end;
    ++segment;
  }
}

void HazardMap::Write(size_t begin, size_t end, int task, std::vector<int>& dependencies) {
  if (begin == end) return;
  Split(begin);
  Split(end);
  const auto first = segments_.lower_bound(begin);
  const auto last = segments_.lower_bound(end);
  for (auto segment = first; segment != last; ++segment) {
    if (segment->second.writer >= 0) dependencies.push_back(segment->second.writer);
    dependencies.insert(dependencies.end(), segment->second.readers.begin(), segment->second.readers.end());
  }
  segments_.erase(first, last);
  segments_.emplace(begin, Segment{end, task, {}});
}

}  // namespace onnxtrain
