// SPDX-License-Identifier: Apache-2.0
#include "passes/merge_equal_nodes.h"

#include <algorithm>
#include <map>

#include "graph/digest.h"
#include "graph/op_registry.h"
#include "passes/replace_value.h"

namespace onnxtrain {
namespace {

// Whether `from` may go. A graph output keeps its name only when a node writes what takes its place, and one value
// cannot be two outputs.
bool MayReplace(const Graph& graph, const Value* from, const Value* to) {
  if (!IsGraphOutput(graph, from)) return true;
  return from->kind() == ValueKind::kIntermediate && to->kind() == ValueKind::kIntermediate &&
         !IsGraphOutput(graph, to);
}

StatusOr<bool> MergeConstants(Graph& graph) {
  std::multimap<uint64_t, Value*> seen;
  bool changed = false;
  for (Value* constant : std::vector<Value*>(graph.constants())) {
    const Tensor& tensor = *constant->constant();
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
    const uint64_t digest = Fnv1a(bytes, Fnv1a(ToString(tensor.type())));
    const auto [begin, end] = seen.equal_range(digest);
    const auto twin =
        std::find_if(begin, end, [&](const auto& entry) { return entry.second->constant()->Identical(tensor); });
    if (twin == end) {
      seen.emplace(digest, constant);
    } else if (MayReplace(graph, constant, twin->second)) {
      RETURN_IF_ERROR(ReplaceValue(graph, constant, twin->second));
      graph.EraseValue(constant);
      changed = true;
    }
  }
  return changed;
}

bool IsIdentityPermutation(const std::vector<int64_t>& permutation, int64_t rank) {
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  }
  return !permutation.empty() || rank < 2;
}

// Whether the only output is always the first input, value for value.
bool HandsOn(const Node& node) {
  if (node.outputs().size() != 1 || node.input(0) == nullptr || node.output(0) == nullptr) return false;
  if (!(node.input(0)->type() == node.output(0)->type())) return false;
  const std::string& op = node.op();
  if (op == "Transpose") {
    return IsIdentityPermutation(node.attributes().Ints("perm"), node.input(0)->type().rank());
  }
  return op == "Identity" || op == "Cast" || op == "CastLike" || op == "Reshape" || op == "Expand" || op == "Squeeze" ||
         op == "Unsqueeze" || op == "Flatten";
}

bool MayMerge(const Node& node) {
  const OpDef& def = node.def();
  return !def.random && !def.collective && !def.side_effect && !node.outputs().empty();
}

// Operator, inputs and which outputs are there. Values are told apart by address: a merge may rename them, and none is
// made while this pass runs.
using Key = std::pair<std::string, std::vector<const Value*>>;

Key KeyOf(const Node& node) {
  Key key{node.op(), {node.inputs().begin(), node.inputs().end()}};
  for (const Value* output : node.outputs()) key.first += output == nullptr ? "-" : "+";
  return key;
}

class MergeEqualNodesPass : public Pass {
 public:
  std::string_view name() const override { return "merge_equal_nodes"; }

  StatusOr<bool> Run(Program& program) const override {
    bool changed = false;
    for (const auto& [name, unused] : program.graphs()) {
      Graph& graph = *program.FindGraph(name);
      ASSIGN_OR_RETURN(const bool constants, MergeConstants(graph));
      ASSIGN_OR_RETURN(const bool nodes, MergeNodes(graph));
      changed = changed || constants || nodes;
    }
    return changed;
  }

 private:
  static StatusOr<bool> MergeNodes(Graph& graph) {
    std::multimap<Key, Node*> seen;
    bool changed = false;
    for (Node* node : graph.NodesInOrder()) {
      std::vector<Value*> twins;
      const Key key = KeyOf(*node);
      if (HandsOn(*node)) {
        twins = {node->input(0)};
      } else if (MayMerge(*node)) {
        const auto [begin, end] = seen.equal_range(key);
        const auto twin = std::find_if(
            begin, end, [&](const auto& entry) { return entry.second->attributes() == node->attributes(); });
        if (twin != end) twins = twin->second->outputs();
      }
      ASSIGN_OR_RETURN(const bool merged, MergeInto(graph, node, twins));
      changed = changed || merged;
      if (!merged && MayMerge(*node)) seen.emplace(key, node);
    }
    return changed;
  }

  // False when there is no twin or the node has to stay.
  static StatusOr<bool> MergeInto(Graph& graph, Node* node, const std::vector<Value*>& twins) {
    if (twins.empty()) return false;
    for (size_t i = 0; i < twins.size(); ++i) {
      if (node->output(i) != nullptr && !MayReplace(graph, node->output(i), twins[i])) return false;
    }
    for (size_t i = 0; i < twins.size(); ++i) {
      if (node->output(i) != nullptr) RETURN_IF_ERROR(ReplaceValue(graph, node->output(i), twins[i]));
    }
    const std::vector<Value*> inputs = node->inputs();
    graph.Erase(node);
    EraseUnusedConstants(graph, inputs);
    return true;
  }
};

}  // namespace

std::unique_ptr<Pass> MergeEqualNodes() { return std::make_unique<MergeEqualNodesPass>(); }

}  // namespace onnxtrain
