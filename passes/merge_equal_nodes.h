// SPDX-License-Identifier: Apache-2.0
// Makes one value of values that are equal by construction.
//
// Before:  a = Transpose(w);  b = Transpose(w);  c = Identity(a);  y = Add(b, c)
// After:   a = Transpose(w);  y = Add(a, a)
//
// Equal are: constants of the same type and bytes, nodes of the same operator, attributes and inputs, and what a node
// hands on unchanged (Identity, a Cast, Reshape, Expand or Transpose that changes nothing) with its input. Nodes that
// draw numbers, communicate or have a side effect are never merged. Where both values are graph outputs, both stay.
#ifndef ONNXTRAIN_PASSES_MERGE_EQUAL_NODES_H_
#define ONNXTRAIN_PASSES_MERGE_EQUAL_NODES_H_

#include <memory>

#include "passes/pass.h"

namespace onnxtrain {

std::unique_ptr<Pass> MergeEqualNodes();

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_MERGE_EQUAL_NODES_H_
