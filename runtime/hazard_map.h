// SPDX-License-Identifier: Apache-2.0
// Who touched which bytes last: turns the accesses of tasks, taken in an order that is known to be right, into the
// orderings that must hold between them (read after write, write after read, write after write). After tinygrad's
// create_schedule.
#ifndef ONNXTRAIN_RUNTIME_HAZARD_MAP_H_
#define ONNXTRAIN_RUNTIME_HAZARD_MAP_H_

#include <cstddef>
#include <map>
#include <vector>

namespace onnxtrain {

// Byte intervals of one address space. Appended dependencies may repeat and may name the task itself.
class HazardMap {
 public:
  void Read(size_t begin, size_t end, int task, std::vector<int>& dependencies);
  void Write(size_t begin, size_t end, int task, std::vector<int>& dependencies);

 private:
  struct Segment {
    size_t end = 0;
    int writer = -1;
    std::vector<int> readers;  // since the last write
  };
  // Makes `at` a border between segments.
  void Split(size_t at);

  std::map<size_t, Segment> segments_;  // by begin; disjoint
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_HAZARD_MAP_H_
