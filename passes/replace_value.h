// SPDX-License-Identifier: Apache-2.0
// Putting one value in the place of another, for the clean-up passes.
#ifndef ONNXTRAIN_PASSES_REPLACE_VALUE_H_
#define ONNXTRAIN_PASSES_REPLACE_VALUE_H_

#include <vector>

#include "graph/graph.h"

namespace onnxtrain {

bool IsGraphOutput(const Graph& graph, const Value* value);
// Whether some state becomes this value.
bool IsUpdate(const Graph& graph, const Value* value);
bool HasRole(const Graph& graph, const Value* value);

// Graph::ReplaceUses, and the roles of `from` move to `to`.
Status ReplaceValue(Graph& graph, Value* from, Value* to);

// Takes out the constants among `values` that nothing names any more. A value may be listed twice, or be null.
void EraseUnusedConstants(Graph& graph, const std::vector<Value*>& values);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_REPLACE_VALUE_H_
