// SPDX-License-Identifier: Apache-2.0
// What ONNX's schema says of a node as the file has it. For sources of this folder.
#ifndef ONNXTRAIN_GRAPH_FUNCTION_BODY_H_
#define ONNXTRAIN_GRAPH_FUNCTION_BODY_H_

#include <memory>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"

namespace onnx {
class FunctionProto;
class NodeProto;
}  // namespace onnx

namespace onnxtrain {

// The body for a node with these input types (unknown: omitted) at `opset` of its domain; null when there is none.
// Formal inputs and outputs are all listed, in order; attributes of the node that the body refers to are filled in from
// the schema's defaults by the caller through the returned attribute_proto.
StatusOr<std::unique_ptr<onnx::FunctionProto>> SchemaFunctionBody(const onnx::NodeProto& node,
                                                                  const std::vector<TensorType>& inputs, int opset);

// Counts of inputs and outputs, and names, kinds and presence of attributes, by the schema of the node's opset.
// Payloads of attributes are not looked at. OK for domains that ONNX does not know.
Status CheckNodeForm(const onnx::NodeProto& node, int opset);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_FUNCTION_BODY_H_
