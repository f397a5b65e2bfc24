// SPDX-License-Identifier: Apache-2.0
// A plan: time, streams and memory of one run of one graph, as data. A straight list of steps in issue order over
// placed byte ranges. It knows no device, is printed as text and JSON, is proved by runtime/plan_verifier.h before it
// may run, and is byte for byte the same on every rank for equal graphs.
#ifndef ONNXTRAIN_RUNTIME_EXECUTION_PLAN_H_
#define ONNXTRAIN_RUNTIME_EXECUTION_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace onnxtrain {

enum class Region : uint8_t {
  kPersistent,  // state and constants: placed once for all plans of a session, survives runs
  kTransient,   // everything else; its content is undefined when a run starts
};

struct Placement {
  Region region = Region::kTransient;
  size_t offset = 0;
  size_t bytes = 0;
  bool operator==(const Placement&) const = default;
};

enum class StepKind : uint8_t {
  kFeed,      // the host's bytes of graph input `value` go to `target`, its placement
  kFetch,     // `range`, the placement of graph output `value`, goes to the host
  kZeroFill,  // `range` becomes zero (padding of buckets)
  kCopy,      // bytes of `range` go to `target` (an update that could not be written in place)
  kLaunch,    // node `node`
  kRecord,    // event `event` on the stream
  kWait,      // the stream waits for `event`
};

struct PlanStep {
  StepKind kind = StepKind::kLaunch;
  int stream = 0;
  int node = -1;   // index in graph order
  int value = -1;  // kFeed: index in graph.inputs(); kFetch: index in graph.outputs()
  int event = -1;
  Placement range;   // kZeroFill; source of kCopy and kFetch
  Placement target;  // destination of kCopy and kFeed
};

struct PlacedValue {
  const Value* value = nullptr;
  Placement placement;
};

struct ExecutionPlan {
  std::vector<std::string> streams;  // "compute", "communication", ...
  std::vector<PlanStep> steps;
  std::vector<PlacedValue> placements;  // states, constants, inputs, then node outputs in graph order
  std::vector<Placement> workspaces;    // one per node, bytes 0 where it needs none
  size_t persistent_bytes = 0;          // end of the last persistent placement used by this plan
  size_t transient_bytes = 0;
  size_t transient_lower_bound = 0;  // most bytes live at one step: no placement of these lifetimes needs less
  int events = 0;

  // Linear in the number of values; null when the plan does not place it.
  const Placement* Find(const Value* value) const;
};

// Where every state and constant lies in the persistent region. Made once per session over all its graphs, so that
// every plan agrees; order: states as in the Program's table, then constants, each at a multiple of 256 bytes.
struct PersistentPlacements {
  std::vector<std::pair<std::string, Placement>> states;
  std::vector<std::pair<const Value*, Placement>> constants;
  size_t bytes = 0;
  // Null when absent.
  const Placement* FindState(const std::string& name) const;
  const Placement* FindConstant(const Value* value) const;
};

// One line per step, then placements and totals: for people and goldens.
std::string ToString(const ExecutionPlan& plan, const Graph& graph);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_EXECUTION_PLAN_H_
