// SPDX-License-Identifier: Apache-2.0
// Proves a plan before it may run. Shares no code with the planner: it replays steps over byte ranges with vector
// clocks and knows of the graph only types, updates and the sharing that OpDef::aliases permits.
//
// Proved for every relative speed of the streams:
//   reads     every read of a value finds exactly the bytes its producer wrote, written before the read may begin; the
//   padding
//             of a bucket is zero whenever the bucket is read; nothing uninitialised is read
//   writes    no write touches bytes that an unordered task reads or writes; workspaces and in-place results included
//   states    every state ends as its update, or as it was; nothing else in the persistent region is written
//   order     collectives run on one stream in graph order; every node runs once, or is one that has nothing to do
//   borders   nothing runs before stream 0 begins the run, and stream 0 ends it after everything else
//   budget    all places lie inside the regions, and the regions inside the memory limit
#ifndef ONNXTRAIN_RUNTIME_PLAN_VERIFIER_H_
#define ONNXTRAIN_RUNTIME_PLAN_VERIFIER_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/status.h"
#include "runtime/execution_plan.h"

namespace onnxtrain {

struct PlanVerifierOptions {
  size_t memory_limit = 0;  // persistent and transient bytes of a plan; 0: none
  // What the kernel of a node will use; null: what the plan says it has.
  std::function<size_t(const Node& node, int index)> workspace_bytes;
};

struct SessionPlan {
  const Graph* graph = nullptr;
  const ExecutionPlan* plan = nullptr;
};

// Every violation found, each a sentence that names the steps, values, byte ranges and streams; empty for a proved
// plan. Replays the plan twice in a row, so that what one run leaves for the next is covered. O(n log n) in steps.
std::vector<std::string> FindViolations(const Graph& graph, const ExecutionPlan& plan,
                                        const PlanVerifierOptions& options = {});
// InternalError with the first violations.
Status VerifyPlan(const Graph& graph, const ExecutionPlan& plan, const PlanVerifierOptions& options = {});

// Plans of one session: each of them, that they agree on the place of every state and keep constants and states apart,
// and every ordered pair of them replayed in a row.
std::vector<std::string> FindSessionViolations(std::span<const SessionPlan> plans,
                                               const PlanVerifierOptions& options = {});
Status VerifySession(std::span<const SessionPlan> plans, const PlanVerifierOptions& options = {});

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_PLAN_VERIFIER_H_
