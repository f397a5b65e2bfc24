// SPDX-License-Identifier: Apache-2.0
// One node under import. For the sources of NodeImporter only.
#ifndef ONNXTRAIN_GRAPH_IMPORTER_CALL_H_
#define ONNXTRAIN_GRAPH_IMPORTER_CALL_H_

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/node_importer.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace onnxtrain {

using ProtoNodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Functions and branches inside each other.
inline constexpr int kMaxImportDepth = 40;

// "" for the default domain, however it is spelled.
std::string DomainOf(const onnx::NodeProto& node);
// One flag a node: whether `needed` names need it. `needed` grows by what such nodes read.
std::vector<bool> NeededNodes(const ProtoNodes& nodes, std::unordered_set<std::string>& needed);

struct NodeImporter::Call {
  const onnx::NodeProto& node;
  Scope& scope;
  std::string op;  // with a domain other than the default one in front
  int64_t opset = 0;
  std::string label;   // the node's name, or its first output's
  std::string origin;  // "/h.0/attn/MatMul (MatMul, opset 17)"
  std::vector<Binding> inputs;
  // By name, with references to a function's attributes resolved.
  std::vector<std::pair<std::string, const onnx::AttributeProto*>> attributes;

  const onnx::AttributeProto* Attribute(std::string_view name) const {
    for (const auto& [key, attribute] : attributes) {
      if (key == name) return attribute;
    }
    return nullptr;
  }
  int64_t Int(std::string_view name, int64_t fallback) const;
  Value* input(size_t index) const {
    return index < inputs.size() && inputs[index].kind == Binding::Kind::kValue ? inputs[index].value : nullptr;
  }
  bool HasSequence() const {
    for (const Binding& binding : inputs) {
      if (binding.kind == Binding::Kind::kSequence) return true;
    }
    return false;
  }
};

inline Binding Bound(Value* value) { return {Binding::Kind::kValue, value, {}, {}}; }
inline Binding BoundSequence(std::vector<Value*> elements) {
  return {Binding::Kind::kSequence, nullptr, std::move(elements), {}};
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_IMPORTER_CALL_H_
