// SPDX-License-Identifier: Apache-2.0
// Places the persistent region of a session: one region for all graphs of a Program and for all its batch shapes.
#ifndef ONNXTRAIN_RUNTIME_PERSISTENT_PLACEMENTS_H_
#define ONNXTRAIN_RUNTIME_PERSISTENT_PLACEMENTS_H_

#include "graph/program.h"
#include "runtime/execution_plan.h"

namespace onnxtrain {

// States in table order, then the constants of all graphs in the order of graphs() and of their constants; each starts
// at a multiple of 256 bytes. Constants of equal type and bytes share one place. Depends on nothing but the program:
// equal on every rank. The constants are keyed by the values of `program`, which must outlive the result.
PersistentPlacements PlacePersistent(const Program& program);

// The same for a single graph without a state table: states in the order of graph.states().
PersistentPlacements PlacePersistent(const Graph& graph);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_PERSISTENT_PLACEMENTS_H_
