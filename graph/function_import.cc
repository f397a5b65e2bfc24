// SPDX-License-Identifier: Apache-2.0
// Functions during import: those of the model, and the bodies that ONNX's schemas give to operators.
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "graph/evaluate.h"
#include "graph/function_body.h"
#include "graph/importer_call.h"

namespace onnxtrain {

NodeImporter::Bindings NodeImporter::ImportFunction(const onnx::FunctionProto& function,
                                                    const std::vector<Binding>& inputs, const onnx::NodeProto& call,
                                                    const Scope& caller) {
  std::string label = call.name();
  for (const std::string& output : call.output()) label = label.empty() ? output : label;
  if (caller.depth >= kMaxImportDepth) {
    return fatal_ = InvalidModelError("function '" + function.name() +
                                      "' nests too deep; functions must not call themselves");
  }
  std::map<std::string, int64_t> opsets = *caller.opsets;
  for (const onnx::OperatorSetIdProto& opset : function.opset_import()) {
    opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = opset.version();
  }
  Scope scope;
  scope.opsets = &opsets;
  scope.prefix = caller.prefix + label + "/";
  scope.depth = caller.depth + 1;
  for (const onnx::AttributeProto& attribute : function.attribute_proto())
    scope.attributes[attribute.name()] = &attribute;
  for (const onnx::AttributeProto& attribute : call.attribute()) {
    const auto outer = caller.attributes.find(attribute.ref_attr_name());
    if (attribute.ref_attr_name().empty())
      scope.attributes[attribute.name()] = &attribute;
    else if (outer != caller.attributes.end())
      scope.attributes[attribute.name()] = outer->second;
  }
  for (int i = 0; i < function.input_size(); ++i) {
    const bool given = static_cast<size_t>(i) < inputs.size();
    scope.names[function.input(i)] = given ? inputs[static_cast<size_t>(i)] : Binding();
  }
  std::unordered_set<std::string> names(function.output().begin(), function.output().end());
  const std::vector<bool> needed = NeededNodes(function.node(), names);
  for (int i = 0; i < function.node_size(); ++i) {
    if (!needed[static_cast<size_t>(i)]) continue;
    fatal_ = ImportNode(function.node(i), scope);
    if (!fatal_.ok()) return fatal_;
  }
  return FunctionOutputs(function, call, scope);
}

// Bodies leave out the optional outputs that the call leaves out.
NodeImporter::Bindings NodeImporter::FunctionOutputs(const onnx::FunctionProto& function, const onnx::NodeProto& call,
                                                     const Scope& scope) {
  std::vector<Binding> outputs;
  for (int i = 0; i < function.output_size(); ++i) {
    outputs.emplace_back();
    if (i >= call.output_size() || call.output(i).empty()) continue;
    StatusOr<Binding> found = Lookup(function.output(i), scope);
    if (!found.ok()) return fatal_ = found.status().Prepend("function '" + function.name() + "'");
    outputs.back() = *std::move(found);
  }
  return outputs;
}

// The schema's function body in the place of an operator that is known by its schema alone, unless it evaluates away.
StatusOr<std::optional<std::vector<Binding>>> NodeImporter::ImportBody(Call& call) {
  const bool constant = std::all_of(call.inputs.begin(), call.inputs.end(), [](const Binding& binding) {
    return binding.value == nullptr || binding.value->constant() != nullptr;
  });
  if (constant && CanEvaluate(call.op)) return std::optional<std::vector<Binding>>();
  calls_.push_back(std::make_unique<onnx::NodeProto>(call.node));
  onnx::NodeProto& node = *calls_.back();
  node.set_domain(DomainOf(call.node));
  node.clear_attribute();
  for (const auto& [name, attribute] : call.attributes) {
    onnx::AttributeProto* made = node.add_attribute();
    *made = *attribute;
    made->set_name(name);
  }
  std::vector<TensorType> types;
  for (const Binding& binding : call.inputs)
    types.push_back(binding.value == nullptr ? TensorType{} : binding.value->type());
  StatusOr<std::unique_ptr<onnx::FunctionProto>> body = SchemaFunctionBody(node, types, static_cast<int>(call.opset));
  if (!body.ok()) return body.status().Prepend(call.origin);
  if (*body == nullptr) return std::optional<std::vector<Binding>>();
  bodies_.push_back(*std::move(body));
  ASSIGN_OR_RETURN(std::vector<Binding> outputs, ImportFunction(*bodies_.back(), call.inputs, node, call.scope));
  return std::optional<std::vector<Binding>>(std::move(outputs));
}

}  // namespace onnxtrain
