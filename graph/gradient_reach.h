// SPDX-License-Identifier: Apache-2.0
// Which values the gradient of a loss flows to.
#ifndef ONNXTRAIN_GRAPH_GRADIENT_REACH_H_
#define ONNXTRAIN_GRAPH_GRADIENT_REACH_H_

#include <span>
#include <unordered_set>

#include "graph/graph.h"

namespace onnxtrain {

// An edge of a node that a gradient may pass: both ends are of a floating type and the operator does not stop it.
bool PassesGradient(const Node& node, size_t input);

// Every value from which a path of such edges leads to one of `losses`, these included.
std::unordered_set<const Value*> GradientReach(const Graph& graph, std::span<const Value* const> losses);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_GRADIENT_REACH_H_
