// SPDX-License-Identifier: Apache-2.0
// Whether BatchNormalization and Dropout were exported in training or in inference mode.
#include <onnx/onnx_pb.h>

#include <map>

#include "graph/model_contents.h"
#include "graph/onnx_proto.h"

namespace onnxtrain {
namespace {

// Walks nodes, bodies of functions and sub-graphs. Constants are known by name.
class ModeSearch {
 public:
  explicit ModeSearch(const OnnxModel& model) : model_(model) {}

  std::vector<ModeNode> Run() {
    Walk(model_.graph().node());
    for (const onnx::FunctionProto& function : model_.shell().functions()) Walk(function.node());
    return std::move(found_);
  }

 private:
  void Walk(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
    for (const onnx::NodeProto& node : nodes) {
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        if (attribute.has_g()) Walk(attribute.g().node());
        if (node.op_type() == "Constant" && attribute.has_t() && node.output_size() == 1) {
          constants_[node.output(0)] = &attribute.t();
        }
      }
      if (node.op_type() == "BatchNormalization") AddBatchNormalization(node);
      if (node.op_type() == "Dropout") AddDropout(node);
    }
  }

  // Before opset 14 there is no attribute; the extra outputs ask for training mode.
  void AddBatchNormalization(const onnx::NodeProto& node) {
    bool training = false, stated = false;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() != "training_mode") continue;
      stated = true;
      training = attribute.i() != 0;
    }
    const auto opset = model_.opsets().find("");
    if (!stated && opset != model_.opsets().end() && opset->second < 14) training = node.output_size() > 1;
    found_.push_back({NameOf(node), node.op_type(), training, true});
  }

  void AddDropout(const onnx::NodeProto& node) {
    if (node.input_size() < 3 || node.input(2).empty()) {
      found_.push_back({NameOf(node), node.op_type(), false, true});
      return;
    }
    const onnx::TensorProto* mode = model_.FindTensor(node.input(2));
    const auto constant = constants_.find(node.input(2));
    if (constant != constants_.end()) mode = constant->second;
    bool training = false, known = false;
    if (mode != nullptr) {
      const StatusOr<Tensor> tensor = TensorFromProto(*mode);
      known = tensor.ok() && tensor->elements() == 1 && tensor->dtype() == DType::kBool;
      training = known && tensor->IntAt(0) != 0;
    }
    found_.push_back({NameOf(node), node.op_type(), training, known});
  }

  static std::string NameOf(const onnx::NodeProto& node) {
    return !node.name().empty() ? node.name() : node.output_size() > 0 ? node.output(0) : "";
  }

  const OnnxModel& model_;
  std::map<std::string, const onnx::TensorProto*> constants_;
  std::vector<ModeNode> found_;
};

}  // namespace

std::vector<ModeNode> OnnxModel::mode_nodes() const { return ModeSearch(*this).Run(); }

}  // namespace onnxtrain
