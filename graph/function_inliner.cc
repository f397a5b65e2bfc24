// SPDX-License-Identifier: Apache-2.0
#include "graph/function_inliner.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "graph/function_body.h"
#include "graph/node_importer.h"
#include "graph/onnx_proto.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

// Constants that a body computes on the way; the same limit as the reader's.
constexpr int64_t kMaxConstantElements = int64_t{1} << 24;

onnx::NodeProto ToNodeProto(const Node& node) {
  onnx::NodeProto proto;
  const size_t dot = node.op().rfind('.');
  proto.set_op_type(dot == std::string::npos ? node.op() : node.op().substr(dot + 1));
  if (dot != std::string::npos) proto.set_domain(node.op().substr(0, dot));
  proto.set_name(node.output(0) != nullptr ? node.output(0)->name() : node.op());
  for (const Value* input : node.inputs()) proto.add_input(input == nullptr ? "" : input->name());
  for (const Value* output : node.outputs()) proto.add_output(output == nullptr ? "" : output->name());
  for (const auto& [name, value] : node.attributes().entries()) AttributeToProto(name, value, proto.add_attribute());
  return proto;
}

StatusOr<std::unique_ptr<onnx::FunctionProto>> BodyOf(const Node& node, const onnx::NodeProto& proto) {
  if (IsOwnOp(node.op())) return std::unique_ptr<onnx::FunctionProto>();
  std::vector<TensorType> types;
  for (const Value* input : node.inputs()) types.push_back(input == nullptr ? TensorType{} : input->type());
  return SchemaFunctionBody(proto, types, kCanonicalOpset);
}

class BodyInliner {
 public:
  BodyInliner(Graph& graph, Node* node) : graph_(graph), node_(node) {}

  Status Run() {
    const onnx::NodeProto call = ToNodeProto(*node_);
    ASSIGN_OR_RETURN(const std::unique_ptr<onnx::FunctionProto> body, BodyOf(*node_, call));
    if (body == nullptr) return InvalidModelError("ONNX gives " + node_->Describe() + " no function body");
    for (Node* made : graph_.NodesInOrder()) before_.insert(made);
    const std::vector<Value*> constants = graph_.constants();
    StatusOr<std::vector<Value*>> outputs = Import(*body, call);
    const std::vector<Node*> made = MadeNodes();
    if (!outputs.ok()) {
      Discard(made, constants);
      return outputs.status().Prepend(node_->Describe());
    }
    for (Node* inner : made) {
      graph_.MoveBefore(inner, node_);
      inner->set_origin(node_->origin().empty() ? "body of " + node_->op() : node_->origin());
    }
    RETURN_IF_ERROR(ReplaceOutputs(*outputs));
    Discard(made, constants);
    return OkStatus();
  }

 private:
  StatusOr<std::vector<Value*>> Import(const onnx::FunctionProto& body, const onnx::NodeProto& call) {
    const std::map<std::string, int64_t> opsets{{"", kCanonicalOpset}};
    const NodeImporter::FunctionMap functions;
    NodeImporter importer(graph_, {false, kMaxConstantElements, ""}, functions);
    Scope scope;
    scope.opsets = &opsets;
    std::vector<Binding> inputs;
    for (Value* input : node_->inputs()) inputs.push_back({Binding::Kind::kValue, input, {}, {}});
    ASSIGN_OR_RETURN(const std::vector<Binding> outputs, importer.ImportFunction(body, inputs, call, scope));
    std::vector<Value*> values;
    for (size_t i = 0; i < node_->outputs().size(); ++i) {
      values.push_back(nullptr);
      if (node_->output(i) == nullptr) continue;
      if (i < outputs.size()) values.back() = outputs[i].value;
      if (values.back() != nullptr) continue;
      const bool reason = i < outputs.size() && !outputs[i].causes.empty();
      return InvalidModelError(reason ? importer.causes()[*outputs[i].causes.begin()]
                                      : "its body has no output " + std::to_string(i));
    }
    return values;
  }

  std::vector<Node*> MadeNodes() const {
    std::vector<Node*> made;
    for (Node* node : graph_.NodesInOrder()) {
      if (before_.count(node) == 0) made.push_back(node);
    }
    return made;
  }

  // The node's outputs become those of the body, with names, uses and roles.
  Status ReplaceOutputs(const std::vector<Value*>& outputs) {
    std::vector<std::pair<Value*, std::string>> named;
    for (size_t i = 0; i < outputs.size(); ++i) {
      Value* old = node_->output(i);
      if (old == nullptr) continue;
      Value* made = outputs[i];
      const std::string name = old->name();
      const bool fresh = made->producer() != nullptr && before_.count(made->producer()) == 0;
      if (!fresh || Named(named, made)) {  // the body hands a value through: the name stays by a copy
        ASSIGN_OR_RETURN(Node * copy, graph_.Insert(node_, {"Identity", {made}, {}, {name}, node_->origin(), {}}));
        made = copy->output(0);
      }
      std::vector<std::string> roles;
      for (const auto& [role, value] : graph_.roles()) {
        if (value == old) roles.push_back(role);
      }
      for (const std::string& role : roles) graph_.SetRole(role, made);
      RETURN_IF_ERROR(graph_.ReplaceUses(old, made));
      named.emplace_back(made, name);
    }
    graph_.Erase(node_);
    for (auto& [value, name] : named) graph_.Rename(value, name);
    return OkStatus();
  }

  static bool Named(const std::vector<std::pair<Value*, std::string>>& named, const Value* value) {
    return std::any_of(named.begin(), named.end(), [&](const auto& entry) { return entry.first == value; });
  }

  bool IsUsed(const Value* value) const {
    if (!value->consumers().empty()) return true;
    if (std::count(graph_.outputs().begin(), graph_.outputs().end(), value) != 0) return true;
    for (const auto& role : graph_.roles()) {
      if (role.second == value) return true;
    }
    return std::any_of(graph_.states().begin(), graph_.states().end(),
                       [&](const Value* state) { return state->update() == value; });
  }

  // Takes out those new nodes and constants that nothing reads.
  void Discard(const std::vector<Node*>& made, const std::vector<Value*>& old_constants) {
    for (auto node = made.rbegin(); node != made.rend(); ++node) {
      const std::vector<Value*>& outputs = (*node)->outputs();
      const bool used = std::any_of(outputs.begin(), outputs.end(),
                                    [&](const Value* value) { return value != nullptr && IsUsed(value); });
      if (!used) graph_.Erase(*node);
    }
    const std::vector<Value*> constants = graph_.constants();
    for (Value* constant : constants) {
      const bool old = std::find(old_constants.begin(), old_constants.end(), constant) != old_constants.end();
      if (!old && !IsUsed(constant)) graph_.EraseValue(constant);
    }
  }

  Graph& graph_;
  Node* node_;
  std::set<const Node*> before_;
};

}  // namespace

bool HasFunctionBody(const Node& node) {
  const StatusOr<std::unique_ptr<onnx::FunctionProto>> body = BodyOf(node, ToNodeProto(node));
  return body.ok() && *body != nullptr;
}

Status InlineFunctionBody(Graph& graph, Node* node) { return BodyInliner(graph, node).Run(); }

}  // namespace onnxtrain
