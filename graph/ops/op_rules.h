// SPDX-License-Identifier: Apache-2.0
// Building blocks of operator definitions that several families use.
#ifndef ONNXTRAIN_GRAPH_OPS_OP_RULES_H_
#define ONNXTRAIN_GRAPH_OPS_OP_RULES_H_

#include <cstdint>
#include <vector>

#include "graph/gradient.h"
#include "graph/lift.h"
#include "graph/op_registry.h"

namespace onnxtrain {

// Output 0 is the bytes of input 0 under another shape.
std::vector<AliasRule> ViewOfInput(const Node& node);
// Output 0 may overwrite any input of exactly its type: element i is read before element i is written.
std::vector<AliasRule> InPlaceOfEqualTypes(const Node& node);

// Type inference of an own gradient operator of a function of one number: two inputs and one output of one type.
StatusOr<std::vector<TensorType>> TypeOfPointwiseGradient(const InferContext& context);

// ONNX's inference followed by what it leaves unchecked: sizes that a kernel relies on.
using TypeCheck = Status (*)(const InferContext& context, const std::vector<TensorType>& outputs);
InferFn SchemaThen(TypeCheck check);

// The values of a constant integer input, int32 or int64. Fails, naming the input, when it is not constant.
StatusOr<std::vector<int64_t>> ConstantInts(const Node& node, size_t index);
// `axis` counted from the front.
inline int64_t NonNegativeAxis(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

// Before `opset` the ints attribute was what input `index` is now.
LiftFn MoveAttributeToInput(int opset, const char* attribute, size_t index);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_OPS_OP_RULES_H_
