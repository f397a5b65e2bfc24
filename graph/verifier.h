// SPDX-License-Identifier: Apache-2.0
// What a valid graph and a valid Program are. Passes are run between two verifications; the runtime accepts nothing
// that was not verified. Every rule has a message that names the node or value, and kInternal as its code: a broken
// rule is a pass's mistake, never the user's.
#ifndef ONNXTRAIN_GRAPH_VERIFIER_H_
#define ONNXTRAIN_GRAPH_VERIFIER_H_

#include "graph/program.h"
#include "graph/status.h"

namespace onnxtrain {

// - values have names, belong to this graph, and are read only after they are written
// - the list of consumers of a value is what the nodes read
// - types are those that inference gives now
// - updates, outputs and roles name values of the graph; an output is listed once
// - loss roles have one element; a gradient role has the shape of its parameter
Status VerifyGraph(const Graph& graph);

// VerifyGraph of every graph, and
// - states of graphs are in the table with equal types; table entries are complete; no two are the same canonical
// tensor
// - world size, buckets and offsets of nodes and table agree with the Layout
// - initial values have the type of their canonical tensor
// - "eval" updates nothing; "zero_<graph>" issues the collectives of <graph>, in the same order
Status VerifyProgram(const Program& program);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_VERIFIER_H_
