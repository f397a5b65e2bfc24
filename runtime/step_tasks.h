// SPDX-License-Identifier: Apache-2.0
// The work of one run before it has an order or an address: what each task reads and writes, in terms of storages.
#ifndef ONNXTRAIN_RUNTIME_STEP_TASKS_H_
#define ONNXTRAIN_RUNTIME_STEP_TASKS_H_

#include <functional>
#include <vector>

#include "runtime/execution_plan.h"
#include "runtime/storage_assignment.h"

namespace onnxtrain {

inline constexpr int kComputeStream = 0;
inline constexpr int kCommunicationStream = 1;

struct Task {
  StepKind kind = StepKind::kLaunch;
  int stream = kComputeStream;
  int node = -1;
  int value = -1;               // kFeed, kFetch: index among the graph's inputs or outputs
  bool in_graph_order = false;  // not before any task of compute that precedes it here: it has a side effect
  std::vector<StorageRange> reads;
  std::vector<StorageRange> writes;  // kCopy: one of each
};

// What the tasks need beside the graph.
struct TaskOptions {
  bool overlap = true;
  std::function<size_t(const Node& node, int index)> workspace_bytes;
};

struct StepTasks {
  std::vector<Task> tasks;      // in an order that is right on one stream: feeds, nodes in graph order, fetches, copies
  std::vector<int> workspaces;  // storage of each node's workspace; -1 where it needs none
  int first_fetch = 0;          // index of the first task after the nodes
};

// Adds the storages of workspaces to `storages`.
StepTasks MakeTasks(const Graph& graph, const TaskOptions& options, StorageAssignment& storages);

// For each task the tasks that must be over before it begins, sorted; derived from bytes alone.
std::vector<std::vector<int>> Dependencies(const std::vector<Task>& tasks, const StorageAssignment& storages);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_STEP_TASKS_H_
