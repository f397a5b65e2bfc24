// SPDX-License-Identifier: Apache-2.0
// Between ONNX's protobuf messages and our own types. For sources of this folder only; the messages are only named
// here, so that no other file compiles them.
#ifndef ONNXTRAIN_GRAPH_ONNX_PROTO_H_
#define ONNXTRAIN_GRAPH_ONNX_PROTO_H_

#include <string>
#include <string_view>

#include "graph/attributes.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace onnx {
class AttributeProto;
class TensorProto;
class TypeProto;
}  // namespace onnx

namespace onnxtrain {

// Element type of ONNX's number; kUndefined for those we do not hold (float8, int4, complex, ...).
DType DTypeFromOnnx(int data_type);
// "float", also for types that DType lacks: "float8e4m3fn". For messages.
std::string OnnxTypeName(int data_type);

// The tensor's bytes, from raw_data or the typed fields. Fails with InvalidModel and the tensor's name on dimensions
// that are negative or overflow, on a payload of another length, on types we do not hold and on external data (which
// graph/external_data.h reads).
StatusOr<Tensor> TensorFromProto(const onnx::TensorProto& proto);
// The type that dims and data_type claim, with the same checks; the payload is not looked at.
StatusOr<TensorType> TensorTypeFromProto(const onnx::TensorProto& proto);
// Whether the number of elements, zeros among the dimensions left out, is so small that no product of them overflows.
bool IsAddressable(const Shape& shape);
// Whether a tensor that is not external holds as many bytes or elements as `type` says.
Status CheckPayload(const onnx::TensorProto& proto, const TensorType& type);
// With raw_data.
void TensorToProto(const Tensor& tensor, std::string_view name, onnx::TensorProto* proto);

// Fails on sub-graphs, type attributes and references to attributes of a function: the caller handles those.
StatusOr<AttributeValue> AttributeFromProto(const onnx::AttributeProto& proto);
void AttributeToProto(std::string_view name, const AttributeValue& value, onnx::AttributeProto* proto);

void TypeToProto(const TensorType& type, onnx::TypeProto* proto);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_ONNX_PROTO_H_
