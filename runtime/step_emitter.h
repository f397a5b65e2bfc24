// SPDX-License-Identifier: Apache-2.0
// Writes tasks that have an order and an address as the steps of a plan, with the fewest records and waits that keep
// every hazard between bytes ordered.
#ifndef ONNXTRAIN_RUNTIME_STEP_EMITTER_H_
#define ONNXTRAIN_RUNTIME_STEP_EMITTER_H_

#include <vector>

#include "runtime/execution_plan.h"
#include "runtime/step_tasks.h"

namespace onnxtrain {

// A task with absolute byte ranges.
struct PlacedTask {
  const Task* task = nullptr;
  std::vector<Placement> reads;
  std::vector<Placement> writes;
};

// Fills plan.steps and plan.events; plan.streams must be set. `tasks` come in the order of issue.
void EmitSteps(const std::vector<PlacedTask>& tasks, ExecutionPlan& plan);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_STEP_EMITTER_H_
