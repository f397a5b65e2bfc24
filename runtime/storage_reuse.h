// SPDX-License-Identifier: Apache-2.0
// What may be decided about memory once the order of execution is known: results written over their dying inputs, buckets
// that take turns in the same bytes, and the lifetime of every storage.
#ifndef ONNXTRAIN_RUNTIME_STORAGE_REUSE_H_
#define ONNXTRAIN_RUNTIME_STORAGE_REUSE_H_

#include <vector>

#include "runtime/memory_planner.h"
#include "runtime/step_tasks.h"
#include "runtime/storage_assignment.h"
#include "runtime/task_order.h"

namespace onnxtrain {

// Merges outputs into inputs by kInPlace rules where every other access of the input's bytes happens before the node. Adds
// no ordering.
void WriteInPlace(const StepTasks& step, const std::vector<int>& order, const TaskClocks& clocks,
                  StorageAssignment& storages);

// Lets each gradient bucket (a transient storage that a collective on its own stream reads and that a node packed) take the
// bytes of the one `in_flight` before it, where the order of issue allows it. Appends to `dependencies` what must then be
// over first. Returns one slot number per storage, -1 where it has bytes of its own; equal slots share their bytes.
std::vector<int> ShareBuckets(const StepTasks& step, const std::vector<int>& order, const StorageAssignment& storages,
                              int in_flight, std::vector<std::vector<int>>& dependencies);

// One lifetime per block, a block being a transient root storage or a slot of them.
struct Blocks {
  std::vector<int> block_of;  // by storage; -1: persistent, or part of another storage
  std::vector<Lifetime> lifetimes;
};
Blocks FindLifetimes(const StepTasks& step, const std::vector<int>& order, const TaskClocks& clocks,
                     const StorageAssignment& storages, const std::vector<int>& slots);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_STORAGE_REUSE_H_
