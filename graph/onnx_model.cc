// SPDX-License-Identifier: Apache-2.0
#include "graph/onnx_model.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>

#include "graph/external_data.h"
#include "graph/model_contents.h"
#include "graph/onnx_file.h"
#include "graph/onnx_proto.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

constexpr int64_t kOldestIr = 3;

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string OpName(const onnx::NodeProto& node) {
  const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
  return standard ? node.op_type() : node.domain() + "." + node.op_type();
}

std::vector<ModelDim> DimsOf(const onnx::TensorShapeProto& shape) {
  std::vector<ModelDim> dims;
  for (const onnx::TensorShapeProto::Dimension& dim : shape.dim()) {
    ModelDim& made = dims.emplace_back();
    if (dim.has_dim_value()) made.value = dim.dim_value();
    if (dim.has_dim_param()) made.symbol = dim.dim_param();
  }
  return dims;
}

std::string DimsText(const std::vector<ModelDim>& dims) {
  std::string text;
  for (const ModelDim& dim : dims) {
    if (!text.empty()) text += ",";
    text += dim.value ? std::to_string(*dim.value) : dim.symbol.empty() ? "?" : dim.symbol;
  }
  return "[" + text + "]";
}

std::string TypeTextOf(const onnx::TypeProto& type) {
  if (type.has_tensor_type()) {
    const onnx::TypeProto::Tensor& tensor = type.tensor_type();
    return OnnxTypeName(tensor.elem_type()) + (tensor.has_shape() ? DimsText(DimsOf(tensor.shape())) : "[...]");
  }
  if (type.has_sequence_type()) return "seq(" + TypeTextOf(type.sequence_type().elem_type()) + ")";
  if (type.has_optional_type()) return "optional(" + TypeTextOf(type.optional_type().elem_type()) + ")";
  if (type.has_map_type()) return "map";
  if (type.has_sparse_tensor_type()) return "sparse_tensor";
  return "";
}

ModelValue ValueOf(const onnx::ValueInfoProto& info) {
  ModelValue value;
  value.name = info.name();
  value.type = TypeTextOf(info.type());
  if (!info.type().has_tensor_type()) return value;
  value.dtype = DTypeFromOnnx(info.type().tensor_type().elem_type());
  if (info.type().tensor_type().has_shape()) value.dims = DimsOf(info.type().tensor_type().shape());
  return value;
}

ModelNode NodeOf(const onnx::NodeProto& proto) {
  ModelNode node{proto.name(), OpName(proto), {}, {}, {}};
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    if (attribute.type() == onnx::AttributeProto::INT) node.ints[attribute.name()] = attribute.i();
  }
  return node;
}

Status CheckTensorsOfNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const std::string& folder);

Status CheckTensorsOf(const onnx::GraphProto& graph, const std::string& folder) {
  for (const onnx::TensorProto& tensor : graph.initializer()) RETURN_IF_ERROR(CheckTensor(tensor, folder));
  return CheckTensorsOfNodes(graph.node(), folder);
}

Status CheckTensorsOfNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                           const std::string& folder) {
  for (const onnx::NodeProto& node : nodes) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      const std::string where =
          "node '" + node.name() + "' (" + OpName(node) + "), attribute '" + attribute.name() + "'";
      if (attribute.has_t()) RETURN_IF_ERROR(CheckTensor(attribute.t(), folder).Prepend(where));
      for (const onnx::TensorProto& tensor : attribute.tensors())
        RETURN_IF_ERROR(CheckTensor(tensor, folder).Prepend(where));
      if (attribute.has_g()) RETURN_IF_ERROR(CheckTensorsOf(attribute.g(), folder).Prepend(where));
      for (const onnx::GraphProto& graph : attribute.graphs())
        RETURN_IF_ERROR(CheckTensorsOf(graph, folder).Prepend(where));
    }
  }
  return OkStatus();
}

}  // namespace

OnnxModel::Contents::Contents() = default;
OnnxModel::Contents::~Contents() = default;
OnnxModel::OnnxModel() = default;
OnnxModel::OnnxModel(OnnxModel&&) noexcept = default;
OnnxModel& OnnxModel::operator=(OnnxModel&&) noexcept = default;
OnnxModel::~OnnxModel() = default;

std::string ModelNode::Describe(int64_t opset) const {
  std::string label = name;
  for (const std::string& output : outputs) {
    if (label.empty()) label = output;
  }
  return label + " (" + op + ", opset " + std::to_string(opset) + ")";
}

StatusOr<OnnxModel> OnnxModel::Load(const std::string& path) {
  auto proto = std::make_unique<onnx::ModelProto>();
  RETURN_IF_ERROR(ReadModelFile(path, proto.get()).Prepend(path));
  return FromProto(std::move(proto), FolderOf(path), path);
}

StatusOr<OnnxModel> OnnxModel::Parse(std::string_view bytes, const std::string& folder, const std::string& name) {
  auto proto = std::make_unique<onnx::ModelProto>();
  RETURN_IF_ERROR(ParseModelBytes(bytes, proto.get()).Prepend(name));
  return FromProto(std::move(proto), folder, name);
}

StatusOr<OnnxModel> OnnxModel::ParseText(std::string_view text, const std::string& folder, const std::string& name) {
  auto proto = std::make_unique<onnx::ModelProto>();
  RETURN_IF_ERROR(ParseModelText(text, proto.get()).Prepend(name));
  return FromProto(std::move(proto), folder, name);
}

StatusOr<OnnxModel> OnnxModel::FromProto(std::unique_ptr<onnx::ModelProto> proto, const std::string& folder,
                                         const std::string& path) {
  if (!proto->has_graph()) return InvalidModelError(path + ": the model has no graph");
  // A text written by hand may leave out what a file always has.
  if (proto->ir_version() == 0 && proto->opset_import_size() == 0) {
    proto->add_opset_import()->set_version(kCanonicalOpset);
  }
  if (!proto->has_ir_version()) proto->set_ir_version(onnx::Version::IR_VERSION);
  OnnxModel model;
  model.path_ = path;
  model.folder_ = folder;
  model.contents_ = std::make_unique<Contents>();
  Contents& contents = *model.contents_;
  contents.graph.reset(proto->release_graph());
  contents.shell = std::move(proto);
  auto* tensors = contents.graph->mutable_initializer();
  while (!tensors->empty()) contents.tensors.emplace_back(tensors->ReleaseLast());
  std::reverse(contents.tensors.begin(), contents.tensors.end());
  RETURN_IF_ERROR(model.CheckStructure().Prepend(path));
  model.Derive();
  return model;
}

Status OnnxModel::CheckStructure() const {
  if (ir_version() < kOldestIr || ir_version() > onnx::Version::IR_VERSION) {
    return InvalidModelError("IR version " + std::to_string(ir_version()) + " is not supported; this build reads " +
                             std::to_string(kOldestIr) + " to " + std::to_string(onnx::Version::IR_VERSION));
  }
  std::set<std::string_view> names;
  for (const auto& tensor : contents_->tensors) {
    if (tensor->name().empty()) return InvalidModelError("an initializer has no name");
    if (!names.insert(tensor->name()).second) {
      return InvalidModelError("two initializers are named '" + tensor->name() + "'");
    }
    RETURN_IF_ERROR(CheckTensor(*tensor, folder_));
  }
  RETURN_IF_ERROR(CheckTensorsOf(*contents_->graph, folder_));
  for (const onnx::FunctionProto& function : contents_->shell->functions()) {
    RETURN_IF_ERROR(CheckTensorsOfNodes(function.node(), folder_).Prepend("function '" + function.name() + "'"));
  }
  for (const onnx::TrainingInfoProto& info : contents_->shell->training_info()) {
    RETURN_IF_ERROR(CheckTensorsOf(info.initialization(), folder_).Prepend("training_info"));
    RETURN_IF_ERROR(CheckTensorsOf(info.algorithm(), folder_).Prepend("training_info"));
  }
  return OkStatus();
}

void OnnxModel::Derive() {
  const onnx::GraphProto& graph = *contents_->graph;
  const std::string& version = contents_->shell->producer_version();
  contents_->producer = contents_->shell->producer_name() + (version.empty() ? "" : " " + version);
  for (const onnx::OperatorSetIdProto& opset : contents_->shell->opset_import()) {
    contents_->opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = opset.version();
  }
  DeriveInitializers();
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (FindTensor(input.name()) == nullptr) contents_->inputs.push_back(ValueOf(input));
  }
  for (const onnx::ValueInfoProto& output : graph.output()) contents_->outputs.push_back(ValueOf(output));
  for (const onnx::ValueInfoProto& info : graph.value_info()) contents_->value_infos.push_back(ValueOf(info));
  for (const onnx::NodeProto& node : graph.node()) {
    contents_->nodes.push_back(NodeOf(node));
    const bool alias = OpName(node) == "Identity" && node.input_size() == 1 && node.output_size() == 1;
    if (alias && FindTensor(node.input(0)) != nullptr) contents_->tied_names[node.output(0)] = node.input(0);
  }
}

void OnnxModel::DeriveInitializers() {
  const onnx::GraphProto& graph = *contents_->graph;
  contents_->initializers.clear();
  contents_->tensor_index.clear();
  for (const auto& tensor : contents_->tensors) {
    ModelInitializer& made = contents_->initializers.emplace_back();
    made.name = tensor->name();
    made.type_text = OnnxTypeName(tensor->data_type()) + ToString(Shape(tensor->dims().begin(), tensor->dims().end()));
    const StatusOr<TensorType> type = TensorTypeFromProto(*tensor);
    if (type.ok()) made.type = *type;
    made.external = tensor->data_location() == onnx::TensorProto::EXTERNAL;
    for (const onnx::StringStringEntryProto& entry : tensor->metadata_props())
      made.metadata[entry.key()] = entry.value();
    contents_->tensor_index[made.name] = contents_->tensor_index.size();
  }
  const auto add_metadata = [this](const onnx::ValueInfoProto& info, bool input) {
    const auto found = contents_->tensor_index.find(info.name());
    if (found == contents_->tensor_index.end()) return;
    ModelInitializer& initializer = contents_->initializers[found->second];
    initializer.also_input = initializer.also_input || input;
    for (const onnx::StringStringEntryProto& entry : info.metadata_props()) {
      initializer.metadata[entry.key()] = entry.value();
    }
  };
  for (const onnx::ValueInfoProto& info : graph.value_info()) add_metadata(info, false);
  for (const onnx::ValueInfoProto& info : graph.input()) add_metadata(info, true);
}

int64_t OnnxModel::ir_version() const { return contents_->shell->ir_version(); }
const std::string& OnnxModel::producer() const { return contents_->producer; }
const std::map<std::string, int64_t>& OnnxModel::opsets() const { return contents_->opsets; }
const std::vector<ModelValue>& OnnxModel::inputs() const { return contents_->inputs; }
const std::vector<ModelValue>& OnnxModel::outputs() const { return contents_->outputs; }
const std::vector<ModelValue>& OnnxModel::value_infos() const { return contents_->value_infos; }
const std::vector<ModelInitializer>& OnnxModel::initializers() const { return contents_->initializers; }
const std::vector<ModelNode>& OnnxModel::nodes() const { return contents_->nodes; }
const std::map<std::string, std::string>& OnnxModel::tied_names() const { return contents_->tied_names; }
bool OnnxModel::has_training_info() const { return contents_->shell->training_info_size() != 0; }
int OnnxModel::function_count() const { return contents_->shell->functions_size(); }
const onnx::ModelProto& OnnxModel::shell() const { return *contents_->shell; }
const onnx::GraphProto& OnnxModel::graph() const { return *contents_->graph; }

const ModelInitializer* OnnxModel::FindInitializer(std::string_view name) const {
  const auto found = contents_->tensor_index.find(std::string(name));
  return found == contents_->tensor_index.end() ? nullptr : &contents_->initializers[found->second];
}

const onnx::TensorProto* OnnxModel::FindTensor(std::string_view name) const {
  const auto found = contents_->tensor_index.find(std::string(name));
  return found == contents_->tensor_index.end() ? nullptr : contents_->tensors[found->second].get();
}

StatusOr<Tensor> OnnxModel::Initializer(std::string_view name) const {
  const onnx::TensorProto* tensor = FindTensor(name);
  if (tensor == nullptr) return InvalidModelError(path_ + ": there is no initializer '" + std::string(name) + "'");
  StatusOr<Tensor> loaded = LoadTensor(*tensor, folder_);
  if (!loaded.ok()) return loaded.status().Prepend(path_);
  return loaded;
}

std::vector<std::string> OnnxModel::ignored() const {
  std::vector<std::string> ignored;
  const onnx::GraphProto& graph = *contents_->graph;
  if (contents_->shell->configuration_size() != 0) ignored.push_back("device configurations and sharding annotations");
  if (graph.quantization_annotation_size() != 0) ignored.push_back("quantization annotations");
  return ignored;
}

std::vector<std::string> OnnxModel::Untie() {
  std::vector<std::string> made;
  auto* nodes = contents_->graph->mutable_node();
  for (int i = 0; i < nodes->size();) {
    const onnx::NodeProto& node = nodes->Get(i);
    const bool alias = OpName(node) == "Identity" && node.input_size() == 1 && node.output_size() == 1;
    const onnx::TensorProto* tensor = alias ? FindTensor(node.input(0)) : nullptr;
    if (tensor == nullptr) {
      ++i;
      continue;
    }
    auto copy = std::make_unique<onnx::TensorProto>(*tensor);
    copy->set_name(node.output(0));
    made.push_back(node.output(0));
    if (ir_version() < 4) {
      onnx::ValueInfoProto* input = contents_->graph->add_input();
      input->set_name(copy->name());
      const StatusOr<TensorType> type = TensorTypeFromProto(*copy);
      if (type.ok()) TypeToProto(*type, input->mutable_type());
    }
    contents_->tensors.push_back(std::move(copy));
    contents_->tensor_index[made.back()] = contents_->tensors.size() - 1;
    nodes->erase(nodes->begin() + i);
  }
  contents_->inputs.clear();
  contents_->outputs.clear();
  contents_->value_infos.clear();
  contents_->nodes.clear();
  contents_->tied_names.clear();
  Derive();
  return made;
}

}  // namespace onnxtrain
