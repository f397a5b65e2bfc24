// SPDX-License-Identifier: Apache-2.0
#include "graph/onnx_writer.h"

#include <onnx/onnx_pb.h>

#include <memory>
#include <set>

#include "graph/model_contents.h"
#include "graph/onnx_proto.h"
#include "graph/op_registry.h"
#include "graph/program_metadata.h"

namespace onnxtrain {
namespace {

constexpr int64_t kIrVersion = 11;

class GraphWriter {
 public:
  GraphWriter(const Program& program, const Graph& graph) : program_(program), graph_(graph) {}

  Status Run(const std::string& path) {
    AddHeader();
    proto_.set_name(graph_.name());
    for (const Value* input : graph_.inputs()) AddInfo(*input, proto_.add_input());
    AddTensors();
    for (const auto& node : graph_.nodes()) AddNode(*node);
    for (const Value* output : graph_.outputs()) AddInfo(*output, proto_.add_output());
    std::vector<const onnx::TensorProto*> tensors;
    for (const auto& tensor : tensors_) tensors.push_back(tensor.get());
    return WriteModelParts(shell_, proto_, tensors, "", {}, path);
  }

 private:
  void AddHeader() {
    shell_.set_ir_version(kIrVersion);
    shell_.set_producer_name("onnx-train");
    shell_.add_opset_import()->set_version(kCanonicalOpset);
    std::set<std::string> domains{std::string(kOwnPrefix.substr(0, kOwnPrefix.size() - 1))};
    for (const auto& node : graph_.nodes()) {
      const size_t dot = node->op().rfind('.');
      if (dot != std::string::npos) domains.insert(node->op().substr(0, dot));
    }
    for (const std::string& domain : domains) {
      onnx::OperatorSetIdProto* opset = shell_.add_opset_import();
      opset->set_domain(domain);
      opset->set_version(1);
    }
    for (const auto& [key, value] : ProgramMetadata(program_)) AddMetadata(key, value);
    for (const Value* state : graph_.states()) {
      if (state->update() != nullptr) AddMetadata("update." + state->name(), state->update()->name());
    }
    for (const auto& [role, value] : graph_.roles()) AddMetadata("role." + role, value->name());
  }

  void AddMetadata(const std::string& key, const std::string& value) {
    onnx::StringStringEntryProto* entry = shell_.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }

  static void AddInfo(const Value& value, onnx::ValueInfoProto* info) {
    info->set_name(value.name());
    TypeToProto(value.type(), info->mutable_type());
  }

  void AddTensor(const std::string& name, const Tensor& tensor) {
    tensors_.push_back(std::make_unique<onnx::TensorProto>());
    TensorToProto(tensor, name, tensors_.back().get());
  }

  void AddTensors() {
    std::set<std::string> written;
    for (const auto& [name, tensor] : InitialValues(program_, graph_)) {
      AddTensor(name, *tensor);
      written.insert(name);
    }
    for (const Value* state : StatesInTableOrder(program_, graph_)) {
      if (written.count(state->name()) != 0) continue;
      const StateEntry* entry = program_.FindState(state->name());
      const bool whole = entry != nullptr && entry->bucket < 0;
      if (whole)
        AddTensor(state->name(), Tensor(state->type()));  // starts as zero
      else
        AddInfo(*state, proto_.add_input());
    }
    for (const Value* constant : graph_.constants()) AddTensor(constant->name(), *constant->constant());
  }

  void AddNode(const Node& node) {
    onnx::NodeProto* made = proto_.add_node();
    const size_t dot = node.op().rfind('.');
    made->set_op_type(dot == std::string::npos ? node.op() : node.op().substr(dot + 1));
    if (dot != std::string::npos) made->set_domain(node.op().substr(0, dot));
    made->set_doc_string(node.origin());
    for (const Value* input : node.inputs()) made->add_input(input == nullptr ? "" : input->name());
    for (const Value* output : node.outputs()) made->add_output(output == nullptr ? "" : output->name());
    for (const auto& [name, value] : node.attributes().entries()) AttributeToProto(name, value, made->add_attribute());
    for (const Value* output : node.outputs()) {
      if (output != nullptr) AddInfo(*output, proto_.add_value_info());
    }
  }

  const Program& program_;
  const Graph& graph_;
  onnx::ModelProto shell_;
  onnx::GraphProto proto_;
  std::vector<std::unique_ptr<onnx::TensorProto>> tensors_;
};

}  // namespace

Status WriteOnnx(const Program& program, std::string_view graph, const std::string& path) {
  const Graph* found = program.FindGraph(graph);
  CHECK_WITH(found != nullptr, "no graph named " + std::string(graph));
  return GraphWriter(program, *found).Run(path);
}

}  // namespace onnxtrain
