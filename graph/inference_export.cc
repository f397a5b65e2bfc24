// SPDX-License-Identifier: Apache-2.0
#include "graph/inference_export.h"

#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <exception>
#include <set>

#include "graph/model_contents.h"
#include "graph/nearest_name.h"

namespace onnxtrain {
namespace {

using Names = std::set<std::string>;

bool IsStandard(const onnx::NodeProto& node) { return node.domain().empty() || node.domain() == "ai.onnx"; }

bool IsClassLoss(const onnx::NodeProto& node) {
  return IsStandard(node) &&
         (node.op_type() == "SoftmaxCrossEntropyLoss" || node.op_type() == "NegativeLogLikelihoodLoss");
}

// What a value is computed from.
struct Origins {
  bool parameters = false;  // a floating-point initializer of more than one element
  Names inputs;             // graph inputs
};

class InferenceExporter {
 public:
  InferenceExporter(const OnnxModel& model, const InferenceExportOptions& options)
      : model_(model), options_(options), shell_(model.shell()), graph_(model.graph()) {}

  Status Run(const std::map<std::string, const Tensor*>& updated, const std::string& path) {
    shell_.clear_training_info();
    IndexNodes();
    ASSIGN_OR_RETURN(const std::string loss, LossOutput());
    if (!loss.empty()) RETURN_IF_ERROR(RemoveLoss(loss));
    DropStatisticsOutputs();
    SetInferenceMode(graph_.mutable_node());
    for (onnx::FunctionProto& function : *shell_.mutable_functions()) SetInferenceMode(function.mutable_node());
    RemoveUnused(!loss.empty());
    std::vector<const onnx::TensorProto*> tensors;
    std::map<std::string, const Tensor*> kept = updated;
    for (const ModelInitializer& initializer : model_.initializers()) {
      if (used_.count(initializer.name) != 0 || loss.empty())
        tensors.push_back(model_.FindTensor(initializer.name));
      else
        kept.erase(initializer.name);
    }
    return WriteModelParts(shell_, graph_, tensors, model_.folder(), kept, path);
  }

 private:
  void IndexNodes() {
    producer_.clear();
    for (const onnx::NodeProto& node : graph_.node()) {
      for (const std::string& output : node.output()) producer_[output] = &node;
    }
  }

  const onnx::NodeProto* Producer(const std::string& name) const {
    const auto found = producer_.find(name);
    return found == producer_.end() ? nullptr : found->second;
  }

  // ---- which output is the loss

  StatusOr<std::string> LossOutput() const {
    std::vector<std::string> names;
    for (const ModelValue& output : model_.outputs()) names.push_back(output.name);
    if (options_.loss) {
      if (options_.loss->empty() || std::count(names.begin(), names.end(), *options_.loss) != 0) return *options_.loss;
      return UsageError("the model has no output '" + *options_.loss + "'" + DidYouMean(*options_.loss, names));
    }
    std::vector<std::string> scalars;
    for (const ModelValue& output : model_.outputs()) {
      const bool scalar = output.dims && std::all_of(output.dims->begin(), output.dims->end(),
                                                     [](const ModelDim& dim) { return dim.value == 1; });
      if (scalar && IsFloating(output.dtype)) scalars.push_back(output.name);
    }
    return scalars.size() == 1 ? scalars[0] : std::string();
  }

  // ---- taking the loss out

  Status RemoveLoss(const std::string& loss) {
    auto* outputs = graph_.mutable_output();
    for (int i = 0; i < outputs->size(); ++i) {
      if (outputs->Get(i).name() == loss) outputs->DeleteSubrange(i--, 1);
    }
    if (!outputs->empty()) return OkStatus();
    std::vector<std::string> predictions = ClassLosses(loss);
    if (predictions.empty()) {
      ASSIGN_OR_RETURN(predictions, LabelFreeValues(loss));
    }
    for (const std::string& name : predictions) RETURN_IF_ERROR(AddOutput(name));
    return OkStatus();
  }

  // The scores that classification losses on the way to `name` read.
  std::vector<std::string> ClassLosses(const std::string& name) const {
    std::vector<std::string> scores, stack{name};
    Names seen;
    while (!stack.empty()) {
      const std::string at = stack.back();
      stack.pop_back();
      const onnx::NodeProto* node = Producer(at);
      if (node == nullptr || !seen.insert(at).second) continue;
      if (IsClassLoss(*node) && node->input_size() > 0) {
        AddOnce(scores, node->input(0));
        continue;
      }
      stack.insert(stack.end(), node->input().begin(), node->input().end());
    }
    return scores;
  }

  std::map<std::string, Origins> FindOrigins() const {
    std::map<std::string, Origins> origins;
    for (const ModelValue& input : model_.inputs()) origins[input.name].inputs.insert(input.name);
    for (const ModelInitializer& initializer : model_.initializers()) {
      origins[initializer.name].parameters = IsFloating(initializer.type.dtype) && initializer.type.elements() > 1;
    }
    for (const onnx::NodeProto& node : graph_.node()) {
      Origins merged;
      const bool shape_only = IsStandard(node) && (node.op_type() == "Shape" || node.op_type() == "Size");
      for (const std::string& input : node.input()) {
        if (shape_only) break;
        const Origins& from = origins[input];
        merged.parameters = merged.parameters || from.parameters;
        merged.inputs.insert(from.inputs.begin(), from.inputs.end());
      }
      for (const std::string& output : node.output()) origins[output] = merged;
    }
    return origins;
  }

  // What the model predicts, for losses that are spelled out: values that meet labels, or else targets.
  StatusOr<std::vector<std::string>> LabelFreeValues(const std::string& loss) const {
    const std::map<std::string, Origins> origins = FindOrigins();
    Names labels;
    for (const std::string& input : origins.at(loss).inputs) {
      if (ReadsNoWeightAfter(loss, input, origins)) labels.insert(input);
    }
    std::vector<std::string> met =
        labels.empty() ? MetBySubtraction(loss, origins) : MetByLabels(loss, labels, origins);
    if (!met.empty()) return met;
    return InvalidModelError("the loss '" + loss +
                             "' is the only output, and what the model predicts cannot be told from "
                             "its labels; export the model again with its prediction as an output");
  }

  // Calls visit(node) for every node from which `follow` values lead to the loss.
  template <typename Follow, typename Visit>
  void WalkBack(const std::string& loss, const Follow& follow, const Visit& visit) const {
    std::vector<std::string> stack{loss};
    Names seen;
    while (!stack.empty()) {
      const std::string at = stack.back();
      stack.pop_back();
      const onnx::NodeProto* node = Producer(at);
      if (node == nullptr || !seen.insert(at).second) continue;
      visit(*node);
      for (const std::string& input : node->input()) {
        if (!input.empty() && follow(*node, input)) stack.push_back(input);
      }
    }
  }

  static bool ReadsWeight(const onnx::NodeProto& node, const std::map<std::string, Origins>& origins) {
    return std::any_of(node.input().begin(), node.input().end(), [&](const std::string& input) {
      return !input.empty() && origins.at(input).parameters && origins.at(input).inputs.empty();
    });
  }

  // Labels meet what the model computes, and no weight is read on the way from there to the loss.
  bool ReadsNoWeightAfter(const std::string& loss, const std::string& label,
                          const std::map<std::string, Origins>& origins) const {
    bool reads = false;
    WalkBack(
        loss,
        [&](const onnx::NodeProto&, const std::string& input) { return origins.at(input).inputs.count(label) != 0; },
        [&](const onnx::NodeProto& node) { reads = reads || ReadsWeight(node, origins); });
    return !reads;
  }

  // Values that depend on weights and data, but on no label, where they are read beside what does.
  std::vector<std::string> MetByLabels(const std::string& loss, const Names& labels,
                                       const std::map<std::string, Origins>& origins) const {
    const auto labelled = [&](const std::string& name) {
      return std::any_of(labels.begin(), labels.end(),
                         [&](const std::string& label) { return origins.at(name).inputs.count(label) != 0; });
    };
    std::vector<std::string> met;
    WalkBack(
        loss, [&](const onnx::NodeProto&, const std::string& input) { return labelled(input); },
        [&](const onnx::NodeProto& node) {
          for (const std::string& input : node.input()) {
            if (!input.empty() && origins.at(input).parameters && !labelled(input)) AddOnce(met, input);
          }
        });
    return met;
  }

  // Where the target is made of an input that is data too: what has an input that met no weight subtracted from it.
  std::vector<std::string> MetBySubtraction(const std::string& loss,
                                            const std::map<std::string, Origins>& origins) const {
    std::vector<std::string> met;
    const auto is_target = [&](const std::string& name) {
      return !origins.at(name).parameters && !origins.at(name).inputs.empty();
    };
    const auto compares = [&](const onnx::NodeProto& node) {
      return IsStandard(node) && node.op_type() == "Sub" && node.input_size() == 2 &&
             is_target(node.input(0)) != is_target(node.input(1));
    };
    WalkBack(
        loss,
        [&](const onnx::NodeProto& node, const std::string&) { return !compares(node) && !ReadsWeight(node, origins); },
        [&](const onnx::NodeProto& node) {
          if (!compares(node)) return;
          const std::string& prediction = node.input(is_target(node.input(0)) ? 1 : 0);
          if (origins.at(prediction).parameters) AddOnce(met, prediction);
        });
    return met;
  }

  static void AddOnce(std::vector<std::string>& names, const std::string& name) {
    if (std::count(names.begin(), names.end(), name) == 0) names.push_back(name);
  }

  // ---- new outputs

  Status AddOutput(const std::string& name) {
    for (const onnx::ValueInfoProto& info : graph_.value_info()) {
      if (info.name() != name || !info.has_type()) continue;
      *graph_.add_output() = info;
      return OkStatus();
    }
    ASSIGN_OR_RETURN(onnx::ValueInfoProto inferred, InferredInfo(name));
    *graph_.add_output() = std::move(inferred);
    return OkStatus();
  }

  // Through ONNX's inference of the whole model, with initializers of the right type and no bytes.
  StatusOr<onnx::ValueInfoProto> InferredInfo(const std::string& name) const {
    onnx::ModelProto whole = shell_;
    *whole.mutable_graph() = graph_;
    for (const ModelInitializer& initializer : model_.initializers()) {
      const onnx::TensorProto& original = *model_.FindTensor(initializer.name);
      onnx::TensorProto* made = whole.mutable_graph()->add_initializer();
      if (initializer.type.elements() <= 64) {
        *made = original;
        continue;
      }
      made->set_name(original.name());
      made->set_data_type(original.data_type());
      *made->mutable_dims() = original.dims();
    }
    try {
      onnx::shape_inference::InferShapes(whole);
    } catch (const std::exception& error) {
      return InvalidModelError("the type of '" + name + "' cannot be inferred: " + error.what());
    }
    for (const onnx::ValueInfoProto& info : whole.graph().value_info()) {
      if (info.name() == name && info.type().tensor_type().elem_type() != 0) return info;
    }
    return InvalidModelError("the type of '" + name + "', which becomes the output, is not known");
  }

  // ---- modes

  // Outputs 1 and on of BatchNormalization, where they are outputs of the graph: inference has none.
  void DropStatisticsOutputs() {
    Names statistics;
    for (const onnx::NodeProto& node : graph_.node()) {
      if (!IsStandard(node) || node.op_type() != "BatchNormalization") continue;
      for (int i = 1; i < node.output_size(); ++i) statistics.insert(node.output(i));
    }
    auto* outputs = graph_.mutable_output();
    for (int i = 0; i < outputs->size(); ++i) {
      if (statistics.count(outputs->Get(i).name()) != 0) outputs->DeleteSubrange(i--, 1);
    }
  }

  static void SetInferenceMode(google::protobuf::RepeatedPtrField<onnx::NodeProto>* nodes) {
    for (onnx::NodeProto& node : *nodes) {
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) SetInferenceMode(attribute.mutable_g()->mutable_node());
      }
      if (!IsStandard(node)) continue;
      if (node.op_type() == "Dropout" && node.input_size() > 2) {
        node.mutable_input()->DeleteSubrange(2, node.input_size() - 2);
      }
      if (node.op_type() != "BatchNormalization") continue;
      if (node.output_size() > 1) node.mutable_output()->DeleteSubrange(1, node.output_size() - 1);
      auto* attributes = node.mutable_attribute();
      for (int i = 0; i < attributes->size(); ++i) {
        if (attributes->Get(i).name() == "training_mode") attributes->DeleteSubrange(i--, 1);
      }
    }
  }

  // ---- what nothing needs any more

  static void CollectReads(const onnx::NodeProto& node, Names& reads) {
    reads.insert(node.input().begin(), node.input().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      for (const onnx::NodeProto& inner : attribute.g().node()) CollectReads(inner, reads);
      for (const onnx::ValueInfoProto& output : attribute.g().output()) reads.insert(output.name());
    }
  }

  void RemoveUnused(bool inputs_too) {
    for (const onnx::ValueInfoProto& output : graph_.output()) used_.insert(output.name());
    auto* nodes = graph_.mutable_node();
    std::vector<bool> needed(static_cast<size_t>(nodes->size()), false);
    Names written;
    for (int i = nodes->size() - 1; i >= 0; --i) {
      const onnx::NodeProto& node = nodes->Get(i);
      const bool used = std::any_of(node.output().begin(), node.output().end(),
                                    [&](const std::string& name) { return !name.empty() && used_.count(name) != 0; });
      if (!used) continue;
      needed[static_cast<size_t>(i)] = true;
      CollectReads(node, used_);
      written.insert(node.output().begin(), node.output().end());
    }
    int kept = 0;
    for (int i = 0; i < nodes->size(); ++i) {
      if (needed[static_cast<size_t>(i)]) nodes->SwapElements(kept++, i);
    }
    nodes->DeleteSubrange(kept, nodes->size() - kept);
    const auto drop = [](auto* infos, const auto& keep) {
      for (int i = 0; i < infos->size(); ++i) {
        if (!keep(infos->Get(i).name())) infos->DeleteSubrange(i--, 1);
      }
    };
    drop(graph_.mutable_value_info(),
         [&](const std::string& name) { return written.count(name) != 0 || (used_.count(name) != 0 || !inputs_too); });
    if (inputs_too) drop(graph_.mutable_input(), [&](const std::string& name) { return used_.count(name) != 0; });
  }

  const OnnxModel& model_;
  const InferenceExportOptions& options_;
  onnx::ModelProto shell_;
  onnx::GraphProto graph_;
  std::map<std::string, const onnx::NodeProto*> producer_;
  Names used_;
};

}  // namespace

Status ExportInference(const OnnxModel& model, const InferenceExportOptions& options,
                       const std::map<std::string, const Tensor*>& updated, const std::string& path) {
  return InferenceExporter(model, options).Run(updated, path);
}

}  // namespace onnxtrain
