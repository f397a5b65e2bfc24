// SPDX-License-Identifier: Apache-2.0
// What may be decided about memory once the order of execution is known: results written over their dying inputs,
// buckets that take turns, and the lifetime of every storage.
#ifndef ONNXTRAIN_RUNTIME_STORAGE_REUSE_H_
#define ONNXTRAIN_RUNTIME_STORAGE_REUSE_H_

#include <vector>

#include "runtime/memory_planner.h"
#include "runtime/step_tasks.h"
#include "runtime/storage_assignment.h"
#include "runtime/task_order.h"

namespace onnxtrain {

// Merges outputs into inputs by kInPlace rules where every other access of the input's bytes happens before the node.
// Adds no ordering.
void WriteInPlace(const StepTasks& step, const std::vector<int>& order, const TaskClocks& clocks,
                  StorageAssignment& storages);

// Makes each gradient bucket (a transient storage that a node packed and a collective on its own stream reads) begin
// after the one `in_flight` before it is over, where the order of issue allows it: appends what must be over first to
// `dependencies`. Whether its bytes are then used again is the memory planner's business; where they are not, no wait
// comes of it.
void LimitBuckets(const StepTasks& step, const std::vector<int>& order, const StorageAssignment& storages,
                  int in_flight, std::vector<std::vector<int>>& dependencies);

// By storage; of no bytes where a storage is persistent, part of another one, or never touched.
std::vector<Lifetime> FindLifetimes(const StepTasks& step, const std::vector<int>& order, const TaskClocks& clocks,
                                    const StorageAssignment& storages);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_STORAGE_REUSE_H_
