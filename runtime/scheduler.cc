// SPDX-License-Identifier: Apache-2.0
#include "runtime/scheduler.h"

#include <algorithm>

#include "graph/cost.h"
#include "runtime/memory_planner.h"
#include "runtime/step_emitter.h"
#include "runtime/step_tasks.h"
#include "runtime/storage_assignment.h"
#include "runtime/storage_reuse.h"
#include "runtime/task_order.h"

namespace onnxtrain {
namespace {

size_t BytesOf(const Task& task) {
  size_t bytes = 0;
  for (const StorageRange& range : task.reads) bytes += range.bytes;
  for (const StorageRange& range : task.writes) bytes += range.bytes;
  return bytes;
}

double DefaultCost(const Node& node) {
  CostModel model;
  model.world_size = 2;
  return NodeMicroseconds(node, model);
}

class Scheduler {
 public:
  Scheduler(const Graph& graph, const ScheduleOptions& options, StorageAssignment storages)
      : graph_(graph), options_(options), storages_(std::move(storages)) {}

  ExecutionPlan Run() {
    step_ = MakeTasks(graph_, {options_.overlap, options_.workspace_bytes}, storages_);
    std::vector<std::vector<int>> dependencies = Dependencies(step_.tasks, storages_);
    order_ = OrderTasks(step_, dependencies, [this](const Task& task) { return CostOf(task); });
    WriteInPlace(step_, order_, TaskClocks(step_.tasks, order_, dependencies), storages_);
    LimitBuckets(step_, order_, storages_, options_.buckets_in_flight, dependencies);
    memory_ = PlanMemory(FindLifetimes(step_, order_, TaskClocks(step_.tasks, order_, dependencies), storages_));
    return MakePlan();
  }

 private:
  double CostOf(const Task& task) const {
    if (task.kind != StepKind::kLaunch) {
      return static_cast<double>(BytesOf(task)) / (CostModel().memory_gbps * 1e3);
    }
    const Node& node = *storages_.nodes()[static_cast<size_t>(task.node)];
    return options_.cost_us ? options_.cost_us(node) : DefaultCost(node);
  }

  ExecutionPlan MakePlan() const {
    ExecutionPlan plan;
    plan.streams = {"compute"};
    const bool communicates = std::any_of(step_.tasks.begin(), step_.tasks.end(),
                                          [](const Task& task) { return task.stream == kCommunicationStream; });
    if (communicates) plan.streams.push_back("communication");
    plan.transient_bytes = memory_.bytes;
    plan.transient_lower_bound = memory_.lower_bound;
    for (const Value* value : storages_.values()) {
      plan.placements.push_back({value, PlaceOf(storages_.Of(value))});
      const Placement& placement = plan.placements.back().placement;
      if (placement.region != Region::kPersistent) continue;
      plan.persistent_bytes = std::max(plan.persistent_bytes, placement.offset + placement.bytes);
    }
    for (int storage : step_.workspaces) {
      plan.workspaces.push_back(storage < 0 ? Placement() : PlaceOf({storage, 0, storages_.Bytes(storage)}));
    }
    EmitSteps(PlaceTasks(), plan);
    return plan;
  }

  std::vector<PlacedTask> PlaceTasks() const {
    std::vector<PlacedTask> placed;
    for (int index : order_) {
      const Task& task = step_.tasks[static_cast<size_t>(index)];
      PlacedTask& entry = placed.emplace_back();
      entry.task = &task;
      for (const StorageRange& range : task.reads) entry.reads.push_back(PlaceOf(range));
      for (const StorageRange& range : task.writes) entry.writes.push_back(PlaceOf(range));
    }
    return placed;
  }

  Placement PlaceOf(const StorageRange& unresolved) const {
    const StorageRange range = storages_.Resolve(unresolved);
    if (const Placement* state = storages_.Persistent(range.storage)) {
      return {Region::kPersistent, state->offset + range.offset, range.bytes};
    }
    return {Region::kTransient, memory_.offsets[static_cast<size_t>(range.storage)] + range.offset, range.bytes};
  }

  const Graph& graph_;
  const ScheduleOptions& options_;
  StorageAssignment storages_;
  StepTasks step_;
  std::vector<int> order_;
  MemoryPlan memory_;
};

StatusOr<ExecutionPlan> ScheduleOnce(const Graph& graph, const ScheduleOptions& options) {
  ASSIGN_OR_RETURN(StorageAssignment storages, StorageAssignment::Create(graph, *options.persistent));
  return Scheduler(graph, options, std::move(storages)).Run();
}

}  // namespace

StatusOr<ExecutionPlan> Schedule(const Graph& graph, const ScheduleOptions& options) {
  CHECK(options.persistent != nullptr);
  ScheduleOptions attempt = options;
  while (true) {
    ASSIGN_OR_RETURN(ExecutionPlan plan, ScheduleOnce(graph, attempt));
    const size_t wanted = options.persistent->bytes + plan.transient_bytes;
    if (options.memory_limit == 0 || wanted <= options.memory_limit) return plan;
    if (attempt.buckets_in_flight == 1) {
      return ResourceExhaustedError("graph '" + graph.name() + "' needs " + std::to_string(wanted) + " bytes (" +
                                    std::to_string(options.persistent->bytes) + " of states and constants, " +
                                    std::to_string(plan.transient_bytes) +
                                    " of a step) with one gradient bucket in flight, the memory limit is " +
                                    std::to_string(options.memory_limit) +
                                    "; a smaller batch, more ranks with --zero 1 or 2, or --recompute need less");
    }
    attempt.buckets_in_flight = attempt.buckets_in_flight == 0 ? 2 : attempt.buckets_in_flight - 1;
  }
}

}  // namespace onnxtrain
