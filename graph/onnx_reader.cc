// SPDX-License-Identifier: Apache-2.0
#include "graph/onnx_reader.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "graph/dim_binding.h"
#include "graph/nearest_name.h"
#include "graph/node_importer.h"

namespace onnxtrain {
namespace {

constexpr int64_t kOldestOpset = 7;

class Specializer {
 public:
  Specializer(const OnnxModel& model, const SpecializeOptions& options)
      : model_(model),
        options_(options),
        graph_(options.registry == nullptr ? OpRegistry::Default() : *options.registry, options.graph_name),
        importer_(graph_, {options.widen_to_double, options.max_constant_elements, model.folder()}, functions_) {}

  StatusOr<Graph> Run() {
    RETURN_IF_ERROR(CheckOpset());
    RETURN_IF_ERROR(ChooseOutputs());
    for (const onnx::FunctionProto& function : model_.shell().functions()) {
      const std::string domain = function.domain() == "ai.onnx" ? "" : function.domain();
      functions_[NodeImporter::FunctionKey(domain, function.name(), function.overload())] = &function;
    }
    RETURN_IF_ERROR(AddInputs());
    scope_.main = true;
    scope_.opsets = &model_.opsets();
    scope_.on_demand = [this](const std::string& name) { return MakeInitializer(name); };
    for (const std::string& name : wanted_) scope_.keep_apart.insert(name);
    RETURN_IF_ERROR(importer_.ImportGraph(model_.graph(), wanted_, scope_));
    RETURN_IF_ERROR(AddOutputs());
    RemoveUnused();
    return std::move(graph_);
  }

 private:
  Status CheckOpset() const {
    const auto found = model_.opsets().find("");
    if (found == model_.opsets().end()) return OkStatus();
    const auto& versions = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
    const int newest = versions.at("").second;
    if (found->second >= kOldestOpset && found->second <= newest) return OkStatus();
    return InvalidModelError("opset " + std::to_string(found->second) + " is not supported; this build reads " +
                             std::to_string(kOldestOpset) + " to " + std::to_string(newest) +
                             "; convert the model with onnx.version_converter or export it again");
  }

  // Every name of the main graph that something can be asked for.
  std::vector<std::string> KnownNames() const {
    std::vector<std::string> names;
    for (const ModelValue& input : model_.inputs()) names.push_back(input.name);
    for (const ModelInitializer& initializer : model_.initializers()) names.push_back(initializer.name);
    for (const ModelNode& node : model_.nodes()) {
      for (const std::string& output : node.outputs) {
        if (!output.empty()) names.push_back(output);
      }
    }
    return names;
  }

  Status ChooseOutputs() {
    wanted_ = options_.outputs;
    if (wanted_.empty()) {
      for (const ModelValue& output : model_.outputs()) wanted_.push_back(output.name);
    }
    const std::vector<std::string> names = KnownNames();
    const std::set<std::string> known(names.begin(), names.end());
    for (const std::string& name : wanted_) {
      if (known.count(name) == 0) {
        return UsageError("the model has no value '" + name + "'" + DidYouMean(name, names));
      }
    }
    std::set<std::string> seen;
    std::erase_if(wanted_, [&](const std::string& name) { return !seen.insert(name).second; });
    return OkStatus();
  }

  // Data that is fed as double counts as what the file declares.
  std::map<std::string, TensorType> DeclaredDTypes(const std::vector<ModelValue>& inputs) const {
    std::map<std::string, TensorType> types = options_.inputs;
    for (const auto& [name, tensor] : options_.constants) types[name] = tensor.type();
    for (const ModelValue& input : inputs) {
      const auto found = types.find(input.name);
      const bool widened = options_.widen_to_double && found != types.end() && found->second.dtype == DType::kDouble;
      if (widened && IsFloating(input.dtype)) found->second.dtype = input.dtype;
    }
    return types;
  }

  Status AddInputs() {
    const std::unordered_set<std::string> needed = NamesNeededFor(model_.graph(), wanted_);
    std::vector<ModelValue> inputs;
    std::vector<std::string> names;
    for (const ModelValue& input : model_.inputs()) {
      names.push_back(input.name);
      if (needed.count(input.name) != 0) inputs.push_back(input);
    }
    for (const auto& [name, type] : DeclaredDTypes(inputs)) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        return UsageError("the model has no input '" + name + "'" + DidYouMean(name, names));
      }
    }
    ASSIGN_OR_RETURN(const auto types, BindInputs(inputs, DeclaredDTypes(inputs), options_.dims));
    for (const ModelValue& input : inputs) {
      if (graph_.FindValue(input.name) != nullptr)
        return InvalidModelError("two inputs are named '" + input.name + "'");
      TensorType type = types.at(input.name);
      type.dtype = importer_.Widened(type.dtype);
      const auto content = options_.constants.find(input.name);
      Value* value = content == options_.constants.end()
                         ? graph_.AddInput(input.name, std::move(type))
                         : graph_.AddConstant(input.name, importer_.Widened(content->second));
      importer_.MarkNamed(value);
      scope_.names[input.name] = {Binding::Kind::kValue, value, {}, {}};
    }
    return OkStatus();
  }

  // Called once per initializer that is needed: the scope asks again, so the result is remembered here.
  StatusOr<std::optional<Binding>> MakeInitializer(const std::string& name) {
    const auto made = initializers_.find(name);
    if (made != initializers_.end()) return std::optional<Binding>(made->second);
    const ModelInitializer* initializer = model_.FindInitializer(name);
    for (const onnx::SparseTensorProto& sparse : model_.graph().sparse_initializer()) {
      if (sparse.values().name() != name) continue;
      return std::optional<Binding>(initializers_[name] =
                                        importer_.Missing("sparse initializer '" + name + "' is not supported"));
    }
    if (initializer == nullptr) return std::optional<Binding>();
    Binding& binding = initializers_[name];
    if (!initializer->type.known()) {
      binding = importer_.Missing("initializer '" + name + "' of type " + initializer->type_text + " is not supported");
      return std::optional<Binding>(binding);
    }
    if (options_.is_state && options_.is_state(*initializer)) {
      ReserveName(name);
      binding.value = graph_.AddState(name, {importer_.Widened(initializer->type.dtype), initializer->type.shape});
    } else {
      ASSIGN_OR_RETURN(Tensor tensor, model_.Initializer(name));
      binding.value = graph_.AddConstant(name, importer_.Widened(std::move(tensor)));
    }
    importer_.NameValue(binding.value, name);
    return std::optional<Binding>(binding);
  }

  // What the import made under a name of the file gives way.
  void ReserveName(const std::string& name) {
    Value* other = graph_.FindValue(name);
    if (other != nullptr) graph_.Rename(other, graph_.UniqueName(name + "_inner"));
  }

  Status AddOutputs() {
    std::set<size_t> causes;
    for (const std::string& name : wanted_) {
      ASSIGN_OR_RETURN(const Binding binding, importer_.Lookup(name, scope_));
      causes.insert(binding.causes.begin(), binding.causes.end());
      if (binding.kind == Binding::Kind::kMissing) continue;
      if (binding.kind == Binding::Kind::kSequence || binding.value == nullptr) {
        return InvalidModelError("'" + name + "' is a sequence of tensors, which cannot be an output");
      }
      if (std::find(graph_.outputs().begin(), graph_.outputs().end(), binding.value) == graph_.outputs().end()) {
        graph_.AddOutput(binding.value);
      }
    }
    if (causes.empty()) return OkStatus();
    std::string text;
    for (const size_t cause : causes) text += (causes.size() == 1 ? "" : "\n  ") + importer_.causes()[cause];
    return InvalidModelError(causes.size() == 1 ? text
                                                : std::to_string(causes.size()) + " nodes cannot be used:" + text);
  }

  void RemoveUnused() {
    const std::vector<Node*> nodes = graph_.NodesInOrder();
    const std::set<const Value*> outputs(graph_.outputs().begin(), graph_.outputs().end());
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const bool used = std::any_of((*node)->outputs().begin(), (*node)->outputs().end(), [&](const Value* value) {
        return value != nullptr && (!value->consumers().empty() || outputs.count(value) != 0);
      });
      if (!used && !(*node)->def().side_effect) graph_.Erase(*node);
    }
    for (const auto* list : {&graph_.inputs(), &graph_.states(), &graph_.constants()}) {
      const std::vector<Value*> values = *list;
      for (Value* value : values) {
        if (value->consumers().empty() && outputs.count(value) == 0) graph_.EraseValue(value);
      }
    }
  }

  const OnnxModel& model_;
  const SpecializeOptions& options_;
  Graph graph_;
  NodeImporter::FunctionMap functions_;
  NodeImporter importer_;
  Scope scope_;
  std::vector<std::string> wanted_;
  std::map<std::string, Binding> initializers_;
};

}  // namespace

StatusOr<Graph> Specialize(const OnnxModel& model, const SpecializeOptions& options) {
  StatusOr<Graph> graph = Specializer(model, options).Run();
  if (!graph.ok()) return graph.status().Prepend(model.path());
  return graph;
}

}  // namespace onnxtrain
