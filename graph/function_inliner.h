// SPDX-License-Identifier: Apache-2.0
// ONNX's own function bodies: an operator without a rule of ours is what its body says, node by node.
#ifndef ONNXTRAIN_GRAPH_FUNCTION_INLINER_H_
#define ONNXTRAIN_GRAPH_FUNCTION_INLINER_H_

#include "graph/graph.h"
#include "graph/status.h"

namespace onnxtrain {

// Whether ONNX defines the node's operator by a function body for the types of its inputs.
bool HasFunctionBody(const Node& node);

// Replaces the node by the nodes of its body, lifted to the canonical form, with constants evaluated. Outputs keep
// their names, uses and roles; the node is gone afterwards. Fails with InvalidModel, leaving the node in place, when
// there is no body or an operator inside it cannot be imported.
Status InlineFunctionBody(Graph& graph, Node* node);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_FUNCTION_INLINER_H_
