// SPDX-License-Identifier: Apache-2.0
// Types of standard operators from the ONNX schemas' own inference functions at kCanonicalOpset, called for one node.
#ifndef ONNXTRAIN_GRAPH_SCHEMA_INFERENCE_H_
#define ONNXTRAIN_GRAPH_SCHEMA_INFERENCE_H_

#include <vector>

#include "graph/op_registry.h"

namespace onnxtrain {

// One type per entry of context.wanted. Checks what the schemas' functions do not: the number of inputs and outputs, the type
// constraints and required attributes. Fails with InvalidModel when an output's type is not fully determined (a shape
// that depends on data) or the operator is unknown to ONNX. Exceptions of the ONNX library are caught here.
StatusOr<std::vector<TensorType>> InferFromSchema(const InferContext& context);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_SCHEMA_INFERENCE_H_
