// SPDX-License-Identifier: Apache-2.0
#include "graph/function_body.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <exception>

#include "graph/onnx_proto.h"

namespace onnxtrain {
namespace {

using Body = std::unique_ptr<onnx::FunctionProto>;

Body ContextDependentBody(const onnx::OpSchema& schema, const onnx::NodeProto& node,
                          const std::vector<TensorType>& inputs, int opset) {
  std::vector<onnx::TypeProto> types(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].known()) TypeToProto(inputs[i], &types[i]);
  }
  const onnx::FunctionBodyBuildContextImpl context(node, types);
  auto body = std::make_unique<onnx::FunctionProto>();
  const std::vector<int> versions = schema.context_dependent_function_opset_versions();
  bool offered = false;
  for (const int version : versions) offered = offered || version <= opset;
  if (!offered || !schema.BuildContextDependentFunction(context, *body, opset)) return nullptr;
  return body;
}

Body BodyOf(const onnx::OpSchema& schema, const onnx::NodeProto& node, const std::vector<TensorType>& inputs,
            int opset) {
  Body body;
  if (schema.HasFunction()) {
    const onnx::FunctionProto* fixed = schema.GetFunction(opset, /*validate=*/false);
    if (fixed != nullptr) body = std::make_unique<onnx::FunctionProto>(*fixed);
  }
  if (body == nullptr && schema.HasContextDependentFunction()) body = ContextDependentBody(schema, node, inputs, opset);
  if (body == nullptr) return nullptr;
  for (const auto& [name, attribute] : schema.attributes()) {
    if (attribute.default_value.type() == onnx::AttributeProto::UNDEFINED) continue;
    onnx::AttributeProto* made = body->add_attribute_proto();
    *made = attribute.default_value;
    made->set_name(name);
  }
  return body;
}

}  // namespace

StatusOr<Body> SchemaFunctionBody(const onnx::NodeProto& node, const std::vector<TensorType>& inputs, int opset) {
  try {
    const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), opset, node.domain());
    if (schema == nullptr) return Body();
    return BodyOf(*schema, node, inputs, opset);
  } catch (const std::exception& error) {
    return InvalidModelError("the function body of " + node.op_type() + ": " + error.what());
  }
}

Status CheckNodeForm(const onnx::NodeProto& node, int opset) {
  try {
    const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), opset, node.domain());
    if (schema != nullptr) schema->Verify(node);
    if (schema == nullptr && node.domain().empty()) {
      return InvalidModelError("ONNX has no operator '" + node.op_type() + "' in opset " + std::to_string(opset));
    }
  } catch (const std::exception& error) {
    return InvalidModelError(error.what());
  }
  return OkStatus();
}

}  // namespace onnxtrain
