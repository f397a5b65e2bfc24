// SPDX-License-Identifier: Apache-2.0
#include "graph/node_importer.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "graph/evaluate.h"
#include "graph/external_data.h"
#include "graph/function_body.h"
#include "graph/importer_call.h"
#include "graph/onnx_proto.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

// Functions that call functions can describe far more nodes than any file holds.
constexpr int64_t kMaxNodes = 1'000'000;

// All names that the node reads, in its sub-graphs too.
void CollectReads(const onnx::NodeProto& node, std::unordered_set<std::string>& reads) {
  reads.insert(node.input().begin(), node.input().end());
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    for (const onnx::NodeProto& inner : attribute.g().node()) CollectReads(inner, reads);
    for (const onnx::ValueInfoProto& output : attribute.g().output()) reads.insert(output.name());
  }
}

std::vector<Binding> BoundAll(const std::vector<Value*>& values) {
  std::vector<Binding> bindings;
  for (Value* value : values) bindings.push_back(Bound(value));
  return bindings;
}

std::vector<std::string> OutputNames(const onnx::NodeProto& node, const std::string& prefix) {
  std::vector<std::string> names;
  for (const std::string& output : node.output()) names.push_back(output.empty() ? "" : prefix + output);
  return names;
}

}  // namespace

std::string DomainOf(const onnx::NodeProto& node) { return node.domain() == "ai.onnx" ? "" : node.domain(); }

std::vector<bool> NeededNodes(const ProtoNodes& nodes, std::unordered_set<std::string>& needed) {
  std::vector<bool> result(static_cast<size_t>(nodes.size()), false);
  for (int i = nodes.size() - 1; i >= 0; --i) {
    const bool used = std::any_of(nodes[i].output().begin(), nodes[i].output().end(), [&](const std::string& output) {
      return !output.empty() && needed.count(output) != 0;
    });
    if (!used) continue;
    result[static_cast<size_t>(i)] = true;
    CollectReads(nodes[i], needed);
  }
  return result;
}

std::unordered_set<std::string> NamesNeededFor(const onnx::GraphProto& body, const std::vector<std::string>& wanted) {
  std::unordered_set<std::string> needed(wanted.begin(), wanted.end());
  NeededNodes(body.node(), needed);
  return needed;
}

int64_t NodeImporter::Call::Int(std::string_view name, int64_t fallback) const {
  const onnx::AttributeProto* attribute = Attribute(name);
  return attribute == nullptr ? fallback : attribute->i();
}

NodeImporter::NodeImporter(Graph& graph, ImporterOptions options, const FunctionMap& functions)
    : graph_(graph), options_(std::move(options)), functions_(functions) {}
NodeImporter::~NodeImporter() = default;

std::string NodeImporter::FunctionKey(const std::string& domain, const std::string& name, const std::string& overload) {
  return domain + ":" + name + ":" + overload;
}

DType NodeImporter::Widened(DType dtype) const {
  return options_.widen_to_double && IsFloating(dtype) ? DType::kDouble : dtype;
}

Tensor NodeImporter::Widened(Tensor tensor) const {
  const DType dtype = Widened(tensor.dtype());
  return dtype == tensor.dtype() ? std::move(tensor) : tensor.CastTo(dtype);
}

Binding NodeImporter::Missing(const std::string& cause) {
  causes_.push_back(cause);
  return {Binding::Kind::kMissing, nullptr, {}, {causes_.size() - 1}};
}

void NodeImporter::NameValue(Value* value, const std::string& name) {
  if (!named_.insert(value).second || value->name() == name) return;
  Value* other = graph_.FindValue(name);
  if (other != nullptr && named_.count(other) != 0) return;
  if (other != nullptr) graph_.Rename(other, graph_.UniqueName(name + "_inner"));
  graph_.Rename(value, name);
}

StatusOr<Binding> NodeImporter::Lookup(const std::string& name, const Scope& scope) {
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    const auto found = at->names.find(name);
    if (found != at->names.end()) return found->second;
    if (!at->on_demand) continue;
    ASSIGN_OR_RETURN(std::optional<Binding> made, at->on_demand(name));
    if (made) return *made;
  }
  return InvalidModelError("'" + name + "' is read before anything defines it");
}

Status NodeImporter::ImportGraph(const onnx::GraphProto& body, const std::vector<std::string>& wanted, Scope& scope) {
  std::unordered_set<std::string> names(wanted.begin(), wanted.end());
  const std::vector<bool> needed = NeededNodes(body.node(), names);
  for (int i = 0; i < body.node_size(); ++i) {
    if (needed[static_cast<size_t>(i)]) RETURN_IF_ERROR(ImportNode(body.node(i), scope));
  }
  return OkStatus();
}

Status NodeImporter::ImportNode(const onnx::NodeProto& node, Scope& scope) {
  if (++imported_ > kMaxNodes) {
    return InvalidModelError("the model expands to more than " + std::to_string(kMaxNodes) + " nodes");
  }
  Call call{node, scope, {}, 0, node.name(), {}, {}, {}};
  call.op = (DomainOf(node).empty() ? "" : DomainOf(node) + ".") + node.op_type();
  for (const std::string& output : node.output()) {
    if (call.label.empty()) call.label = output;
  }
  const auto opset = scope.opsets->find(DomainOf(node));
  call.opset = opset == scope.opsets->end() ? 0 : opset->second;
  call.origin = scope.prefix + call.label + " (" + call.op + ", opset " + std::to_string(call.opset) + ")";
  std::set<size_t> causes;
  for (const std::string& name : node.input()) {
    Binding& binding = call.inputs.emplace_back();
    if (name.empty()) continue;
    StatusOr<Binding> found = Lookup(name, scope);
    if (!found.ok()) return found.status().Prepend(call.origin);
    binding = *std::move(found);
    causes.insert(binding.causes.begin(), binding.causes.end());
  }
  if (!causes.empty()) {
    const Binding missing{Binding::Kind::kMissing, nullptr, {}, std::move(causes)};
    return BindOutputs(node, std::vector<Binding>(static_cast<size_t>(node.output_size()), missing), scope);
  }
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      call.attributes.emplace_back(attribute.name(), &attribute);
      continue;
    }
    const auto bound = scope.attributes.find(attribute.ref_attr_name());
    if (bound != scope.attributes.end()) call.attributes.emplace_back(attribute.name(), bound->second);
  }
  Bindings outputs = Dispatch(call);
  if (!fatal_.ok()) return fatal_;
  if (!outputs.ok()) {
    const Binding missing = Missing(outputs.status().message());
    outputs = std::vector<Binding>(static_cast<size_t>(node.output_size()), missing);
  }
  return BindOutputs(node, *std::move(outputs), scope).Prepend(call.origin);
}

Status NodeImporter::BindOutputs(const onnx::NodeProto& node, std::vector<Binding> outputs, Scope& scope) {
  if (outputs.size() < static_cast<size_t>(node.output_size())) {
    return InvalidModelError("it has " + std::to_string(node.output_size()) + " outputs, its definition " +
                             std::to_string(outputs.size()));
  }
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& name = node.output(i);
    if (name.empty()) continue;
    Binding& binding = outputs[static_cast<size_t>(i)];
    if (scope.names.count(name) != 0) return InvalidModelError("'" + name + "' is written twice");
    if (scope.main && binding.kind == Binding::Kind::kValue && binding.value != nullptr) {
      const bool alias = named_.count(binding.value) != 0;
      if (alias && scope.keep_apart.count(name) != 0) {
        ASSIGN_OR_RETURN(Node * copy, graph_.Insert(nullptr, {"Identity", {binding.value}, {}, {name}, name, {}}));
        binding.value = copy->output(0);
      }
      NameValue(binding.value, name);
    }
    scope.names.emplace(name, std::move(binding));
  }
  return OkStatus();
}

NodeImporter::Bindings NodeImporter::Dispatch(Call& call) {
  static const std::set<std::string> kSequenceOps = {
      "SplitToSequence",    "SequenceConstruct",  "SequenceEmpty", "SequenceAt",
      "SequenceLength",     "SequenceInsert",     "SequenceErase", "ConcatFromSequence",
      "OptionalGetElement", "OptionalHasElement", "Optional"};
  const auto function = functions_.find(FunctionKey(DomainOf(call.node), call.node.op_type(), call.node.overload()));
  if (function != functions_.end()) return ImportFunction(*function->second, call.inputs, call.node, call.scope);
  if (call.opset == 0) {
    return InvalidModelError(call.origin + ": the model does not import the domain '" + DomainOf(call.node) +
                             "', and has no function of that name");
  }
  if (call.node.op_type().empty() || call.node.op_type().find('.') != std::string::npos) {
    return InvalidModelError(call.origin + ": '" + call.node.op_type() + "' is no name of an operator");
  }
  if (IsOwnOp(call.op)) {
    return InvalidModelError(call.origin +
                             ": operators of onnx-train stand in graphs that were rewritten already; give the "
                             "model that they were made from");
  }
  if (call.op == "If") return ImportIf(call);
  if (call.op == "Loop" || call.op == "Scan") {
    return InvalidModelError(call.origin + ": loops are not supported; export the model with the loop unrolled");
  }
  if (call.op == "Constant") return ImportConstant(call);
  if (call.op == "Identity" && call.inputs.size() == 1) return std::vector<Binding>{call.inputs[0]};
  if (kSequenceOps.count(call.op) != 0) return ImportSequenceOp(call);
  if (call.HasSequence()) return InvalidModelError(call.origin + ": sequences of tensors cannot be its inputs");
  if (call.op == "Cast" || call.op == "CastLike") return ImportCast(call);
  return ImportGeneric(call);
}

NodeImporter::Bindings NodeImporter::ImportConstant(Call& call) {
  const std::string name = call.scope.prefix + call.label;
  for (const auto& [kind, attribute] : call.attributes) {
    Tensor tensor;
    if (kind == "value") {
      StatusOr<Tensor> loaded = LoadTensor(attribute->t(), options_.folder);
      if (!loaded.ok()) return loaded.status().Prepend(call.origin);
      tensor = *std::move(loaded);
    } else if (kind == "value_float") {
      tensor = Tensor::Scalar<float>(attribute->f());
    } else if (kind == "value_floats") {
      tensor = Tensor::FromVector<float>({attribute->floats_size()},
                                         {attribute->floats().begin(), attribute->floats().end()});
    } else if (kind == "value_int") {
      tensor = Tensor::Scalar<int64_t>(attribute->i());
    } else if (kind == "value_ints") {
      tensor = Tensor::Ints({attribute->ints().begin(), attribute->ints().end()});
    } else {
      return InvalidModelError(call.origin + ": constants by '" + kind + "' are not supported");
    }
    return std::vector<Binding>{Bound(graph_.AddConstant(name, Widened(std::move(tensor))))};
  }
  return InvalidModelError(call.origin + ": it has no value");
}

NodeImporter::Bindings NodeImporter::ImportIf(Call& call) {
  const Value* condition = call.input(0);
  if (condition == nullptr || condition->constant() == nullptr || condition->type().elements() != 1) {
    return InvalidModelError(call.origin +
                             ": which branch is taken depends on data; only conditions that are known when "
                             "training starts are supported");
  }
  const bool taken = condition->constant()->IntAt(0) != 0;
  const onnx::AttributeProto* attribute = call.Attribute(taken ? "then_branch" : "else_branch");
  if (attribute == nullptr || !attribute->has_g()) return InvalidModelError(call.origin + ": a branch is missing");
  if (call.scope.depth >= kMaxImportDepth) return InvalidModelError(call.origin + ": branches nest too deep");
  const onnx::GraphProto& branch = attribute->g();
  Scope scope;
  scope.parent = &call.scope;
  scope.opsets = call.scope.opsets;
  scope.attributes = call.scope.attributes;
  scope.prefix = call.scope.prefix + call.label + "/";
  scope.depth = call.scope.depth + 1;
  for (const onnx::TensorProto& proto : branch.initializer()) {
    StatusOr<Tensor> tensor = LoadTensor(proto, options_.folder);
    scope.names[proto.name()] =
        tensor.ok() ? Bound(graph_.AddConstant(scope.prefix + proto.name(), Widened(*std::move(tensor))))
                    : Missing(tensor.status().Prepend(call.origin).message());
  }
  std::vector<std::string> wanted;
  for (const onnx::ValueInfoProto& output : branch.output()) wanted.push_back(output.name());
  fatal_ = ImportGraph(branch, wanted, scope);
  std::vector<Binding> outputs;
  for (const std::string& name : wanted) {
    if (!fatal_.ok()) return fatal_;
    StatusOr<Binding> found = Lookup(name, scope);
    if (!found.ok()) return fatal_ = found.status().Prepend(call.origin);
    outputs.push_back(*std::move(found));
  }
  return outputs;
}

NodeImporter::Bindings NodeImporter::ImportCast(Call& call) {
  Value* input = call.input(0);
  if (input == nullptr) return InvalidModelError(call.origin + ": its input is missing");
  if (call.op == "CastLike") {
    const Value* like = call.input(1);
    if (like == nullptr) return InvalidModelError(call.origin + ": its second input is missing");
    if (like->type().dtype == input->type().dtype) return std::vector<Binding>{Bound(input)};
    ASSIGN_OR_RETURN(Value * cast, EmitOne(call, "Cast", {input}, {{"to", static_cast<int64_t>(like->type().dtype)}}));
    return std::vector<Binding>{Bound(cast)};
  }
  const DType to = DTypeFromOnnx(static_cast<int>(call.Int("to", 0)));
  if (to != DType::kUndefined && Widened(to) == input->type().dtype) return std::vector<Binding>{Bound(input)};
  return ImportGeneric(call);
}

StatusOr<ImportedNode> NodeImporter::ToImported(const Call& call) const {
  ImportedNode node;
  node.op = call.op;
  node.opset = static_cast<int>(call.opset);
  node.origin = call.origin;
  node.output_names = OutputNames(call.node, call.scope.prefix);
  for (const Binding& binding : call.inputs) node.inputs.push_back(binding.value);
  for (const auto& [name, attribute] : call.attributes) {
    if (attribute->type() == onnx::AttributeProto::TENSOR) {
      StatusOr<Tensor> tensor = LoadTensor(attribute->t(), options_.folder);
      if (!tensor.ok()) return tensor.status().Prepend(call.origin + ", attribute '" + name + "'");
      node.attributes.Set(name, *std::move(tensor));
      continue;
    }
    StatusOr<AttributeValue> value = AttributeFromProto(*attribute);
    if (!value.ok()) return value.status().Prepend(call.origin);
    node.attributes.Set(name, *std::move(value));
  }
  if (options_.widen_to_double) {
    WidenAttributes(node);
    KeepScalesNarrow(node);
  }
  return node;
}

// Scales of these operators are float by definition, whatever the data is.
void NodeImporter::KeepScalesNarrow(ImportedNode& node) const {
  const size_t index = node.op == "Resize" && node.opset >= 11 ? 2 : 1;
  if ((node.op != "Resize" && node.op != "Upsample") || index >= node.inputs.size()) return;
  Value*& scales = node.inputs[index];
  if (scales == nullptr || scales->constant() == nullptr || scales->type().dtype != DType::kDouble) return;
  scales = graph_.AddConstant(scales->name() + "_float", scales->constant()->CastTo(DType::kFloat));
}

// Attributes that name an element type, and those that do so by being absent.
void NodeImporter::WidenAttributes(ImportedNode& node) const {
  constexpr int64_t kDouble = static_cast<int64_t>(DType::kDouble);
  const bool has_stash =
      node.op == "LayerNormalization" || node.op == "RMSNormalization" || node.op == "GroupNormalization";
  const bool draws = node.op == "RandomNormal" || node.op == "RandomUniform";
  if (has_stash && node.opset >= (node.op == "GroupNormalization" ? 21 : 17)) {
    node.attributes.Set("stash_type", kDouble);
  }
  if (draws && !node.attributes.Has("dtype")) node.attributes.Set("dtype", kDouble);
  if (node.op == "ConstantOfShape" && !node.attributes.Has("value")) {
    node.attributes.Set("value", Tensor(TensorType{DType::kDouble, {1}}));
  }
  for (const char* name : {"to", "dtype", "stash_type", "softmax_precision"}) {
    const AttributeValue* value = node.attributes.Find(name);
    const int64_t* type = value == nullptr ? nullptr : std::get_if<int64_t>(value);
    if (type != nullptr && IsFloating(DTypeFromOnnx(static_cast<int>(*type)))) node.attributes.Set(name, kDouble);
  }
  const Attributes::Map entries = node.attributes.entries();
  for (const auto& [name, value] : entries) {
    const Tensor* tensor = std::get_if<Tensor>(&value);
    if (tensor != nullptr && IsFloating(tensor->dtype())) node.attributes.Set(name, tensor->CastTo(DType::kDouble));
  }
}

// Lifting rules and inference may rely on what the schema of the file's opset demands.
Status NodeImporter::CheckForm(const Call& call) {
  onnx::NodeProto node;
  node.set_op_type(call.node.op_type());
  node.set_domain(DomainOf(call.node));
  *node.mutable_output() = call.node.output();
  for (const Binding& binding : call.inputs) node.add_input(binding.value == nullptr ? "" : binding.value->name());
  for (const auto& [name, attribute] : call.attributes) {
    onnx::AttributeProto* made = node.add_attribute();
    made->set_name(name);
    made->set_type(attribute->type());
    if (attribute->has_t()) made->mutable_t();
    if (attribute->has_tp()) made->mutable_tp();
    if (attribute->has_g()) made->mutable_g();
  }
  return CheckNodeForm(node, static_cast<int>(call.opset)).Prepend(call.origin);
}

NodeImporter::Bindings NodeImporter::ImportGeneric(Call& call) {
  RETURN_IF_ERROR(CheckForm(call));
  const OpDef* def = graph_.registry().Find(call.op);
  if (def == nullptr || def->schema_only) {
    ASSIGN_OR_RETURN(std::optional<std::vector<Binding>> body, ImportBody(call));
    if (body) return *std::move(body);
  }
  ASSIGN_OR_RETURN(ImportedNode node, ToImported(call));
  ASSIGN_OR_RETURN(const std::vector<Value*> values,
                   AppendLifted(graph_, std::move(node), options_.max_constant_elements));
  return BoundAll(values);
}

StatusOr<std::vector<Value*>> NodeImporter::Emit(const Call& call, std::string op, std::vector<Value*> inputs,
                                                 Attributes attributes, std::vector<std::string> outputs) {
  ImportedNode node{std::move(op),     kCanonicalOpset,    std::move(attributes),
                    std::move(inputs), std::move(outputs), call.origin};
  return AppendLifted(graph_, std::move(node), options_.max_constant_elements);
}

StatusOr<Value*> NodeImporter::EmitOne(const Call& call, std::string op, std::vector<Value*> inputs,
                                       Attributes attributes) {
  ASSIGN_OR_RETURN(const std::vector<Value*> values, Emit(call, std::move(op), std::move(inputs), std::move(attributes),
                                                          {call.scope.prefix + call.label}));
  return values[0];
}

}  // namespace onnxtrain
