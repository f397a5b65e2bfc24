// SPDX-License-Identifier: Apache-2.0
#include "graph/schema_inference.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <exception>
#include <memory>

#include "graph/onnx_proto.h"

namespace onnxtrain {
namespace {

// Inputs that give shapes (axes, scales, sizes, ...) are small; the bytes of weights are never copied for inference.
constexpr int64_t kMaxKnownElements = 4096;

// One node as ONNX's inference functions want to see it.
class NodeInference final : public onnx::InferenceContext {
 public:
  NodeInference(const InferContext& node, const onnx::NodeProto& proto) : node_(node), proto_(proto) {
    input_types_.resize(node.inputs.size());
    input_data_.resize(node.inputs.size());
    output_types_.resize(node.wanted.size());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].known()) TypeToProto(node.inputs[i], &input_types_[i]);
    }
  }

  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    for (const onnx::AttributeProto& attribute : proto_.attribute()) {
      if (attribute.name() == name) return &attribute;
    }
    return nullptr;
  }
  size_t getNumInputs() const override { return input_types_.size(); }
  const onnx::TypeProto* getInputType(size_t index) const override {
    return index < input_types_.size() && node_.inputs[index].known() ? &input_types_[index] : nullptr;
  }
  const onnx::TensorProto* getInputData(size_t index) const override {
    const Tensor* tensor = index < node_.constants.size() ? node_.constants[index] : nullptr;
    if (tensor == nullptr || tensor->elements() > kMaxKnownElements) return nullptr;
    if (input_data_[index] == nullptr) {
      input_data_[index] = std::make_unique<onnx::TensorProto>();
      TensorToProto(*tensor, "", input_data_[index].get());
    }
    return input_data_[index].get();
  }
  size_t getNumOutputs() const override { return output_types_.size(); }
  onnx::TypeProto* getOutputType(size_t index) override {
    return index < output_types_.size() ? &output_types_[index] : nullptr;
  }
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string&) override { return nullptr; }
  const onnx::SparseTensorProto* getInputSparseData(size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(size_t) const override { return nullptr; }
  std::string getDisplayName() const override { return std::string(node_.op); }

 private:
  const InferContext& node_;
  const onnx::NodeProto& proto_;
  std::vector<onnx::TypeProto> input_types_;
  mutable std::vector<std::unique_ptr<onnx::TensorProto>> input_data_;
  std::vector<onnx::TypeProto> output_types_;
};

struct QualifiedName {
  std::string domain;
  std::string op;
};

QualifiedName SplitName(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {"", std::string(name)};
  return {std::string(name.substr(0, dot)), std::string(name.substr(dot + 1))};
}

const onnx::OpSchema* FindSchema(const QualifiedName& name) {
  // Other domains have one canonical version: their newest.
  if (!name.domain.empty()) return onnx::OpSchemaRegistry::Schema(name.op, name.domain);
  return onnx::OpSchemaRegistry::Schema(name.op, kCanonicalOpset, name.domain);
}

onnx::NodeProto ToNodeProto(const InferContext& context, const QualifiedName& name) {
  onnx::NodeProto proto;
  proto.set_op_type(name.op);
  proto.set_domain(name.domain);
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    proto.add_input(context.inputs[i].known() ? "input" + std::to_string(i) : "");
  }
  for (size_t i = 0; i < context.wanted.size(); ++i) {
    proto.add_output(context.wanted[i] ? "output" + std::to_string(i) : "");
  }
  for (const auto& [attribute, value] : context.attributes.entries()) {
    AttributeToProto(attribute, value, proto.add_attribute());
  }
  return proto;
}

std::string ShapeText(const onnx::TypeProto& type) {
  if (!type.tensor_type().has_shape()) return "unknown rank";
  std::string text = "[";
  for (const onnx::TensorShapeProto::Dimension& dim : type.tensor_type().shape().dim()) {
    if (text.size() > 1) text += ",";
    text += dim.has_dim_value() ? std::to_string(dim.dim_value()) : "?";
  }
  return text + "]";
}

StatusOr<TensorType> ConcreteType(const onnx::TypeProto& type, size_t output) {
  const std::string where = "output " + std::to_string(output);
  if (!type.has_tensor_type()) return InvalidModelError(where + " has no tensor type");
  TensorType result{DTypeFromOnnx(type.tensor_type().elem_type()), {}};
  if (!result.known()) {
    return InvalidModelError(where + " has elements of " + OnnxTypeName(type.tensor_type().elem_type()) +
                             ", which is not supported");
  }
  bool concrete = type.tensor_type().has_shape();
  for (const onnx::TensorShapeProto::Dimension& dim : type.tensor_type().shape().dim()) {
    concrete = concrete && dim.has_dim_value() && dim.dim_value() >= 0;
    result.shape.push_back(dim.dim_value());
  }
  if (!concrete) {
    return InvalidModelError("the shape of " + where + " (" + ShapeText(type) +
                             ") depends on data; only shapes that follow from those of the inputs can be trained");
  }
  if (!IsAddressable(result.shape)) return InvalidModelError(where + " of type " + ToString(result) + " is too large");
  return result;
}

StatusOr<std::vector<TensorType>> Infer(const InferContext& context, const QualifiedName& name,
                                        const onnx::OpSchema& schema) {
  const onnx::NodeProto proto = ToNodeProto(context, name);
  schema.Verify(proto);
  NodeInference inference(context, proto);
  if (auto function = schema.GetTypeAndShapeInferenceFunction()) function(inference);
  schema.CheckInputOutputType(inference);
  std::vector<TensorType> types(context.wanted.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (!context.wanted[i]) continue;
    ASSIGN_OR_RETURN(types[i], ConcreteType(*inference.getOutputType(i), i));
  }
  return types;
}

}  // namespace

StatusOr<std::vector<TensorType>> InferFromSchema(const InferContext& context) {
  const QualifiedName name = SplitName(context.op);
  try {
    const onnx::OpSchema* schema = FindSchema(name);
    if (schema == nullptr) {
      return InvalidModelError("ONNX has no operator '" + name.op + "'" +
                               (name.domain.empty() ? " in opset " + std::to_string(kCanonicalOpset)
                                                    : " in the domain '" + name.domain + "'"));
    }
    return Infer(context, name, *schema);
  } catch (const std::exception& error) {
    return InvalidModelError(error.what());
  }
}

}  // namespace onnxtrain
