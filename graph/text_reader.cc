// SPDX-License-Identifier: Apache-2.0
#include "graph/text_reader.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "graph/onnx_file.h"
#include "graph/onnx_proto.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kUpdate = "update.";
constexpr std::string_view kRole = "role.";
StatusOr<TensorType> DeclaredType(const onnx::ValueInfoProto& info) {
  const onnx::TypeProto::Tensor& tensor = info.type().tensor_type();
  TensorType type{DTypeFromOnnx(tensor.elem_type()), {}};
  bool concrete = info.type().has_tensor_type() && type.known() && tensor.has_shape();
  for (const onnx::TensorShapeProto::Dimension& dim : tensor.shape().dim()) {
    concrete = concrete && dim.has_dim_value() && dim.dim_value() >= 0;
    type.shape.push_back(dim.dim_value());
  }
  if (!concrete || !IsAddressable(type.shape)) {
    return InvalidModelError("'" + info.name() +
                             "' needs a type with known dimensions, such as float[2,3] (a scalar: float)");
  }
  return type;
}

class TextImport {
 public:
  TextImport(const onnx::ModelProto& model, const OpRegistry& registry)
      : model_(model), proto_(model.graph()), result_{Graph(registry, proto_.name()), {}, {}} {}

  StatusOr<TextGraph> Run(const std::set<std::string, std::less<>>& states) {
    RETURN_IF_ERROR(CheckOpsets());
    RETURN_IF_ERROR(ReadMetadata());
    RETURN_IF_ERROR(ReadInputs());
    RETURN_IF_ERROR(ReadValueInfos());
    RETURN_IF_ERROR(ReadTensors(states));
    for (const onnx::NodeProto& node : proto_.node()) RETURN_IF_ERROR(ReadNode(node));
    RETURN_IF_ERROR(CheckDeclaredTypes());
    RETURN_IF_ERROR(ReadOutputs());
    RETURN_IF_ERROR(SetUpdatesAndRoles());
    return std::move(result_);
  }

 private:
  Graph& graph() { return result_.graph; }

  Status CheckOpsets() const {
    for (const onnx::OperatorSetIdProto& opset : model_.opset_import()) {
      if (opset.domain().empty() && opset.version() != kCanonicalOpset) {
        return InvalidModelError("the text form is written in opset " + std::to_string(kCanonicalOpset) +
                                 ", this text declares " + std::to_string(opset.version()));
      }
    }
    return OkStatus();
  }

  Status ReadMetadata() {
    for (const onnx::StringStringEntryProto& entry : model_.metadata_props()) {
      if (entry.key().starts_with(kUpdate)) {
        updates_.emplace_back(entry.key().substr(kUpdate.size()), entry.value());
      } else if (entry.key().starts_with(kRole)) {
        roles_.emplace_back(entry.key().substr(kRole.size()), entry.value());
      } else {
        result_.metadata.emplace_back(entry.key(), entry.value());
      }
    }
    return OkStatus();
  }

  Status CheckNew(const std::string& name) const {
    if (name.empty()) return InvalidModelError("a value without a name");
    if (result_.graph.FindValue(name) == nullptr) return OkStatus();
    return InvalidModelError("'" + name + "' is defined twice");
  }

  Status ReadInputs() {
    for (const onnx::ValueInfoProto& input : proto_.input()) {
      ASSIGN_OR_RETURN(TensorType type, DeclaredType(input));
      RETURN_IF_ERROR(CheckNew(input.name()));
      graph().AddInput(input.name(), std::move(type));
    }
    return OkStatus();
  }

  // Names behind the signature without a tensor: states, or the types of what nodes write.
  Status ReadValueInfos() {
    std::set<std::string> written;
    for (const onnx::NodeProto& node : proto_.node()) written.insert(node.output().begin(), node.output().end());
    for (const onnx::ValueInfoProto& info : proto_.value_info()) {
      if (info.name().starts_with(kInitialPrefix)) continue;
      ASSIGN_OR_RETURN(TensorType type, DeclaredType(info));
      if (written.count(info.name()) != 0) {
        declared_.emplace_back(info.name(), std::move(type));
        continue;
      }
      RETURN_IF_ERROR(CheckNew(info.name()));
      graph().AddState(info.name(), std::move(type));
    }
    return OkStatus();
  }

  Status ReadTensors(const std::set<std::string, std::less<>>& states) {
    for (const onnx::TensorProto& proto : proto_.initializer()) {
      ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(proto));
      if (proto.name().starts_with(kInitialPrefix)) {
        result_.initial.emplace_back(proto.name(), std::move(tensor));
        continue;
      }
      RETURN_IF_ERROR(CheckNew(proto.name()));
      if (states.count(proto.name()) != 0 || HasUpdate(proto.name())) {
        graph().AddState(proto.name(), tensor.type());
        result_.initial.emplace_back(proto.name(), std::move(tensor));
      } else {
        graph().AddConstant(proto.name(), std::move(tensor));
      }
    }
    return OkStatus();
  }

  bool HasUpdate(const std::string& name) const {
    return std::any_of(updates_.begin(), updates_.end(), [&](const auto& update) { return update.first == name; });
  }

  StatusOr<Value*> Find(const std::string& name, const std::string& reader) const {
    Value* value = result_.graph.FindValue(name);
    if (value != nullptr) return value;
    return InvalidModelError(reader + " reads '" + name + "', which is not defined before it");
  }

  Status ReadNode(const onnx::NodeProto& node) {
    NodeSpec spec;
    spec.op = node.domain().empty() ? node.op_type() : node.domain() + "." + node.op_type();
    const std::string where = spec.op + " node of '" + (node.output_size() == 0 ? "" : node.output(0)) + "'";
    for (const std::string& name : node.input()) {
      spec.inputs.push_back(nullptr);
      if (name.empty()) continue;
      ASSIGN_OR_RETURN(spec.inputs.back(), Find(name, where));
    }
    for (const std::string& name : node.output()) {
      if (!name.empty()) RETURN_IF_ERROR(CheckNew(name).Prepend(where));
      if (!name.empty() && std::count(node.output().begin(), node.output().end(), name) != 1) {
        return InvalidModelError(where + " writes '" + name + "' twice");
      }
      spec.output_names.push_back(name);
    }
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      StatusOr<AttributeValue> value = AttributeFromProto(attribute);
      if (!value.ok()) return value.status().Prepend(where);
      spec.attributes.Set(attribute.name(), *std::move(value));
    }
    StatusOr<Node*> inserted = graph().Insert(nullptr, std::move(spec));
    return inserted.ok() ? OkStatus() : inserted.status().Prepend(where);
  }

  Status CheckType(const std::string& name, const TensorType& declared) const {
    ASSIGN_OR_RETURN(const Value* value, Find(name, "the text"));
    if (value->type() == declared) return OkStatus();
    return InvalidModelError("'" + name + "' is declared " + ToString(declared) + " and is " + ToString(value->type()));
  }

  Status CheckDeclaredTypes() const {
    for (const auto& [name, type] : declared_) RETURN_IF_ERROR(CheckType(name, type));
    return OkStatus();
  }

  Status ReadOutputs() {
    for (const onnx::ValueInfoProto& output : proto_.output()) {
      ASSIGN_OR_RETURN(Value * value, Find(output.name(), "the list of outputs"));
      if (output.has_type()) {
        ASSIGN_OR_RETURN(const TensorType type, DeclaredType(output));
        RETURN_IF_ERROR(CheckType(output.name(), type));
      }
      graph().AddOutput(value);
    }
    return OkStatus();
  }

  Status SetUpdatesAndRoles() {
    for (const auto& [name, to] : updates_) {
      ASSIGN_OR_RETURN(Value * state, Find(name, "metadata 'update." + name + "'"));
      ASSIGN_OR_RETURN(Value * update, Find(to, "metadata 'update." + name + "'"));
      if (state->kind() != ValueKind::kState) return InvalidModelError("'" + name + "' has an update and is no state");
      if (!(state->type() == update->type())) {
        return InvalidModelError("state '" + name + "' of type " + ToString(state->type()) + " is updated by '" + to +
                                 "' of type " + ToString(update->type()));
      }
      graph().SetUpdate(state, update);
    }
    for (const auto& [role, name] : roles_) {
      ASSIGN_OR_RETURN(Value * value, Find(name, "metadata 'role." + role + "'"));
      graph().SetRole(role, value);
    }
    return OkStatus();
  }

  const onnx::ModelProto& model_;
  const onnx::GraphProto& proto_;
  TextGraph result_;
  std::vector<std::pair<std::string, std::string>> updates_;
  std::vector<std::pair<std::string, std::string>> roles_;
  std::vector<std::pair<std::string, TensorType>> declared_;
};

Status ParseModel(std::string_view text, onnx::ModelProto& model) {
  RETURN_IF_ERROR(ParseModelText(text, &model));
  if (model.functions_size() == 0) return OkStatus();
  return InvalidModelError("text goes on after the graph: functions are not part of the canonical form");
}

}  // namespace

StatusOr<TextGraph> ReadGraphText(std::string_view text, const OpRegistry& registry,
                                  const std::set<std::string, std::less<>>& states) {
  onnx::ModelProto model;
  RETURN_IF_ERROR(ParseModel(text, model));
  StatusOr<TextGraph> graph = TextImport(model, registry).Run(states);
  if (!graph.ok()) return graph.status().Prepend("graph '" + model.graph().name() + "'");
  return graph;
}

StatusOr<std::vector<std::pair<std::string, std::string>>> ReadTextMetadata(std::string_view text) {
  onnx::ModelProto model;
  RETURN_IF_ERROR(ParseModel(text, model));
  std::vector<std::pair<std::string, std::string>> metadata;
  for (const onnx::StringStringEntryProto& entry : model.metadata_props()) {
    metadata.emplace_back(entry.key(), entry.value());
  }
  return metadata;
}

}  // namespace onnxtrain
