// SPDX-License-Identifier: Apache-2.0
// Plans with one thing broken, as a planner with a bug would make them. The plan verifier has to catch every one.
#ifndef ONNXTRAIN_TESTS_SUPPORT_PLAN_MUTATIONS_H_
#define ONNXTRAIN_TESTS_SUPPORT_PLAN_MUTATIONS_H_

#include <string>
#include <vector>

#include "runtime/execution_plan.h"

namespace onnxtrain {

struct BrokenPlan {
  std::string what;
  ExecutionPlan plan;
};

std::vector<BrokenPlan> WithoutEachWait(const ExecutionPlan& plan);
// But for those whose bytes an earlier zero fill has written, too: they may be zero anyway.
std::vector<BrokenPlan> WithoutEachZeroFill(const ExecutionPlan& plan);
// Launches of one stream of which the later reads what the earlier writes, exchanged.
std::vector<BrokenPlan> WithSwappedLaunches(const ExecutionPlan& plan, const Graph& graph);
// The result of a launch moved onto one of its inputs, or onto a value that a later launch still reads.
std::vector<BrokenPlan> WithOverlaps(const ExecutionPlan& plan, const Graph& graph);
// What a state becomes, placed or copied somewhere else.
std::vector<BrokenPlan> WithLostUpdates(const ExecutionPlan& plan, const Graph& graph);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_PLAN_MUTATIONS_H_
