// SPDX-License-Identifier: Apache-2.0
#include "graph/verifier.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/op_registry.h"
#include "graph/schema_inference.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kGradient = "gradient/";

class GraphVerifier {
 public:
  explicit GraphVerifier(const Graph& graph) : graph_(graph) {}

  Status Run() {
    if (graph_.name().empty()) return InternalError("a graph without a name");
    for (const auto* values : {&graph_.inputs(), &graph_.states(), &graph_.constants()}) {
      for (const Value* value : *values) RETURN_IF_ERROR(Define(value));
    }
    for (const auto& node : graph_.nodes()) RETURN_IF_ERROR(CheckNode(*node));
    for (const Value* value : defined_) RETURN_IF_ERROR(CheckConsumers(value));
    RETURN_IF_ERROR(CheckUpdates());
    RETURN_IF_ERROR(CheckOutputs());
    return CheckRoles();
  }

 private:
  bool Owns(const Value* value) const { return graph_.FindValue(value->name()) == value; }

  Status Define(const Value* value) {
    if (value->name().empty()) return InternalError("a value without a name");
    if (!value->type().known()) return InternalError("'" + value->name() + "' has no type");
    defined_.insert(value);
    return OkStatus();
  }

  Status CheckNode(const Node& node) {
    for (const Value* input : node.inputs()) {
      if (input == nullptr) continue;
      if (!Owns(input)) return InternalError(node.Describe() + " reads '" + input->name() + "' of another graph");
      if (defined_.count(input) == 0) {
        return InternalError(node.Describe() + " reads '" + input->name() + "' before " +
                             input->producer()->Describe() + " writes it");
      }
      ++reads_[input][&node];
    }
    RETURN_IF_ERROR(CheckTypes(node));
    for (const Value* output : node.outputs()) {
      if (output != nullptr) RETURN_IF_ERROR(Define(output));
    }
    return OkStatus();
  }

  static Status CheckTypes(const Node& node) {
    InferContext context{node.op(), node.attributes(), {}, {}, {}};
    for (const Value* input : node.inputs()) {
      context.inputs.push_back(input == nullptr ? TensorType{} : input->type());
      context.constants.push_back(input == nullptr ? nullptr : input->constant());
    }
    for (const Value* output : node.outputs()) context.wanted.push_back(output != nullptr);
    const StatusOr<std::vector<TensorType>> types =
        node.def().infer ? node.def().infer(context) : InferFromSchema(context);
    if (!types.ok()) return InternalError(node.Describe() + " does not fit its inputs: " + types.status().message());
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      const Value* output = node.output(i);
      if (output == nullptr || output->type() == (*types)[i]) continue;
      return InternalError(node.Describe() + " writes '" + output->name() + "' of type " + ToString(output->type()) +
                           ", inference gives " + ToString((*types)[i]));
    }
    return OkStatus();
  }

  Status CheckConsumers(const Value* value) const {
    std::unordered_map<const Node*, int> listed;
    for (const Node* consumer : value->consumers()) ++listed[consumer];
    const auto found = reads_.find(value);
    const bool same = found == reads_.end() ? listed.empty() : listed == found->second;
    if (same) return OkStatus();
    return InternalError("the consumers of '" + value->name() + "' are not the nodes of this graph that read it");
  }

  Status CheckUpdates() const {
    for (const Value* state : graph_.states()) {
      const Value* update = state->update();
      if (update == nullptr) continue;
      if (!Owns(update)) {
        return InternalError("state '" + state->name() + "' is updated by '" + update->name() + "' of another graph");
      }
      if (!(update->type() == state->type())) {
        return InternalError("state '" + state->name() + "' of type " + ToString(state->type()) + " is updated by '" +
                             update->name() + "' of type " + ToString(update->type()));
      }
    }
    return OkStatus();
  }

  Status CheckOutputs() const {
    std::unordered_set<const Value*> seen;
    for (const Value* output : graph_.outputs()) {
      if (!Owns(output)) return InternalError("output '" + output->name() + "' belongs to another graph");
      if (!seen.insert(output).second) return InternalError("output '" + output->name() + "' is listed twice");
    }
    return OkStatus();
  }

  Status CheckRoles() const {
    for (const auto& [role, value] : graph_.roles()) {
      if (!Owns(value)) return InternalError("role '" + role + "' is a value of another graph");
      const bool scalar = role == "loss" || role == "loss_sum" || role == "loss_weight";
      if (scalar && value->type().elements() != 1) {
        return InternalError("role '" + role + "' needs one element, '" + value->name() + "' is " +
                             ToString(value->type()));
      }
      if (role.starts_with(kGradient)) RETURN_IF_ERROR(CheckGradient(role.substr(kGradient.size()), *value));
    }
    return OkStatus();
  }

  Status CheckGradient(const std::string& name, const Value& gradient) const {
    const Value* parameter = graph_.FindValue(name);
    if (parameter == nullptr || parameter->type().shape == gradient.type().shape) return OkStatus();
    return InternalError("the gradient of '" + name + "' of type " + ToString(parameter->type()) + " is '" +
                         gradient.name() + "' of type " + ToString(gradient.type()));
  }

  const Graph& graph_;
  std::unordered_set<const Value*> defined_;
  std::unordered_map<const Value*, std::unordered_map<const Node*, int>> reads_;
};

}  // namespace

Status VerifyGraph(const Graph& graph) {
  const Status status = GraphVerifier(graph).Run();
  return status.ok() ? status : status.Prepend("graph '" + graph.name() + "'");
}

}  // namespace onnxtrain
