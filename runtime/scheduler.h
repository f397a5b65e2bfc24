// SPDX-License-Identifier: Apache-2.0
// Turns a graph into an ExecutionPlan: which bytes hold which value, what runs on which stream in which order, and the
// fewest waits that make it free of races.
//
// Compute runs in graph order on stream 0; where the next node would stall on a collective, a later one that can run
// goes first. Collectives (OpDef::collective) run on stream 1 in graph order, the same on every rank because passes put
// them there in order of release and of first use; each is issued as soon as its last input exists, and waits for
// nothing but that input. The plan depends on graph and options only: equal inputs give byte-equal plans.
#ifndef ONNXTRAIN_RUNTIME_SCHEDULER_H_
#define ONNXTRAIN_RUNTIME_SCHEDULER_H_

#include <cstddef>
#include <functional>

#include "graph/graph.h"
#include "graph/status.h"
#include "runtime/execution_plan.h"

namespace onnxtrain {

struct ScheduleOptions {
  // False: everything on stream 0, collectives included.
  bool overlap = true;
  // Where states and constants lie (runtime/persistent_placements.h); required.
  const PersistentPlacements* persistent = nullptr;
  // Scratch bytes of the node's kernel; `index` is its place in graph order. Null: no kernel needs any.
  std::function<size_t(const Node& node, int index)> workspace_bytes;
  // Microseconds a node takes on its stream; must be equal on all ranks. Null: that of graph/cost.h with its
  // defaults, on two ranks. It decides only where compute steps aside for a collective.
  std::function<double(const Node& node)> cost_us;
  // Persistent and transient bytes together; 0: no limit. A plan that does not fit is tried again with fewer buckets in
  // flight, then refused with ResourceExhausted.
  size_t memory_limit = 0;
  // At most so many gradient buckets are in memory at a time: the bucket after that waits for the collective of the
  // first. 0: no limit. ZeRO-2 wants 2.
  int buckets_in_flight = 0;
};

// Fails when a state or constant of the graph has no persistent placement of its size, or when the memory limit cannot
// be kept.
StatusOr<ExecutionPlan> Schedule(const Graph& graph, const ScheduleOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_SCHEDULER_H_
