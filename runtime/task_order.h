// SPDX-License-Identifier: Apache-2.0
// In which order the tasks of a run are issued, and what each of them may then take for granted.
#ifndef ONNXTRAIN_RUNTIME_TASK_ORDER_H_
#define ONNXTRAIN_RUNTIME_TASK_ORDER_H_

#include <functional>
#include <vector>

#include "runtime/memory_planner.h"
#include "runtime/step_tasks.h"

namespace onnxtrain {

// List scheduling in virtual time. Each stream runs its tasks one after the other; collectives keep their order among
// themselves; compute takes the first task in task order that can start without a stall, or else the one that can start
// soonest. Fetches and copies come last. A permutation of task indices that respects `dependencies`.
std::vector<int> OrderTasks(const StepTasks& step, const std::vector<std::vector<int>>& dependencies,
                            const std::function<double(const Task&)>& cost_us);

// Vector clocks of tasks that are issued in a given order, each after its dependencies.
class TaskClocks {
 public:
  TaskClocks(const std::vector<Task>& tasks, const std::vector<int>& order,
             const std::vector<std::vector<int>>& dependencies);

  // Place among the tasks of its stream.
  int position(int task) const { return positions_[static_cast<size_t>(task)]; }
  // Place in the order of issue.
  int step(int task) const { return steps_[static_cast<size_t>(task)]; }
  // What each stream has certainly finished when the task ends; its own position included.
  const StreamPositions& clock(int task) const { return clocks_[static_cast<size_t>(task)]; }
  bool HappensBefore(int first, int second) const;

 private:
  const std::vector<Task>& tasks_;
  std::vector<int> positions_;
  std::vector<int> steps_;
  std::vector<StreamPositions> clocks_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_TASK_ORDER_H_
