// SPDX-License-Identifier: Apache-2.0
// Puts gradient nodes into the order of release: for one gradient after the other what it still needs, and nothing
// else. So the gradient of a weight is computed before the gradient that goes on backwards, and its reduction starts
// earlier.
#ifndef ONNXTRAIN_PASSES_RELEASE_ORDER_H_
#define ONNXTRAIN_PASSES_RELEASE_ORDER_H_

#include <vector>

#include "graph/graph.h"

namespace onnxtrain {

// Reorders the nodes behind the first `forward` ones. `gradients` keep the order in which they stand now; nodes that
// none of them needs go to the end.
void OrderByRelease(Graph& graph, size_t forward, std::vector<const Value*> gradients);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_RELEASE_ORDER_H_
