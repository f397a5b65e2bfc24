// SPDX-License-Identifier: Apache-2.0
// The rules of a Program that no graph can see alone.
#include <algorithm>
#include <set>

#include "graph/op_registry.h"
#include "graph/verifier.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kZero = "zero_";

class ProgramVerifier {
 public:
  explicit ProgramVerifier(const Program& program) : program_(program), layout_(program.layout()) {}

  Status Run() const {
    RETURN_IF_ERROR(CheckNumbers());
    for (const StateEntry& entry : program_.states()) RETURN_IF_ERROR(CheckEntry(entry));
    RETURN_IF_ERROR(CheckCanonicalNames());
    RETURN_IF_ERROR(CheckInitial());
    for (const auto& [name, graph] : program_.graphs()) {
      RETURN_IF_ERROR(VerifyGraph(graph));
      const Status status = CheckGraph(graph);
      if (!status.ok()) return status.Prepend("graph '" + name + "'");
    }
    return CheckZeroGraphs();
  }

 private:
  Status CheckNumbers() const {
    if (program_.world_size < 1) return InternalError("world size " + std::to_string(program_.world_size));
    if (program_.accumulation < 1) return InternalError("accumulation " + std::to_string(program_.accumulation));
    if (!layout_.empty() && layout_.world_size() != program_.world_size) {
      return InternalError("the Layout is for " + std::to_string(layout_.world_size()) + " ranks, the program for " +
                           std::to_string(program_.world_size));
    }
    return OkStatus();
  }

  // ---- the state table

  Status CheckEntry(const StateEntry& entry) const {
    const std::string where = "state '" + entry.name + "'";
    if (entry.name.empty()) return InternalError("a state without a name");
    if (!entry.type.known()) return InternalError(where + " has no type");
    if (entry.role.empty()) return InternalError(where + " has no role");
    if (entry.bucket >= 0) return CheckBucketEntry(entry).Prepend(where);
    if (entry.parameter.empty()) return InternalError(where + " names no canonical parameter and no bucket");
    if (entry.sharded) return InternalError(where + " is sharded and in no bucket of the Layout");
    return OkStatus();
  }

  Status CheckBucketEntry(const StateEntry& entry) const {
    if (!entry.parameter.empty()) {
      return InternalError("it holds the parts of many, so it has no canonical parameter '" + entry.parameter + "'");
    }
    if (entry.bucket >= static_cast<int>(layout_.buckets().size())) return NoBucket(entry.bucket);
    const int64_t whole = layout_.buckets()[static_cast<size_t>(entry.bucket)].elements;
    const int64_t elements = entry.sharded ? layout_.shard_elements(entry.bucket) : whole;
    if (entry.type.shape == Shape{elements}) return OkStatus();
    return InternalError("it has type " + ToString(entry.type) + ", the Layout gives " + std::to_string(elements) +
                         " elements to " + (entry.sharded ? "a shard of bucket " : "bucket ") +
                         std::to_string(entry.bucket));
  }

  Status NoBucket(int64_t bucket) const {
    return InternalError("bucket " + std::to_string(bucket) + " is not among the Layout's " +
                         std::to_string(layout_.buckets().size()));
  }

  Status CheckCanonicalNames() const {
    std::set<std::string> names;
    for (const StateEntry& entry : program_.states()) {
      const std::string canonical =
          entry.bucket < 0 ? CanonicalName(entry) : entry.role + " of bucket " + std::to_string(entry.bucket);
      if (!names.insert(canonical).second) return InternalError("two states hold '" + canonical + "'");
    }
    return OkStatus();
  }

  Status CheckInitial() const {
    for (const StateEntry& entry : program_.states()) {
      if (entry.bucket < 0) RETURN_IF_ERROR(CheckInitialType(CanonicalName(entry), entry.type));
    }
    for (const LayoutParameter& parameter : layout_.parameters()) {
      const auto found = program_.initial.find("parameter/" + parameter.name);
      if (found == program_.initial.end() || found->second.shape() == parameter.type.shape) continue;
      return InternalError("the initial value of '" + parameter.name + "' has shape " +
                           ToString(found->second.shape()) + ", the Layout says " + ToString(parameter.type.shape));
    }
    return OkStatus();
  }

  Status CheckInitialType(const std::string& canonical, const TensorType& type) const {
    const auto found = program_.initial.find(canonical);
    if (found == program_.initial.end() || found->second.type() == type) return OkStatus();
    return InternalError("the initial value of '" + canonical + "' is " + ToString(found->second.type()) +
                         ", its state is " + ToString(type));
  }

  // ---- graphs

  Status CheckGraph(const Graph& graph) const {
    for (const Value* state : graph.states()) {
      const StateEntry* entry = program_.FindState(state->name());
      if (entry == nullptr) return InternalError("state '" + state->name() + "' is not in the state table");
      if (!(entry->type == state->type())) {
        return InternalError("state '" + state->name() + "' is " + ToString(state->type()) + ", the state table says " +
                             ToString(entry->type));
      }
      if (graph.name() == "eval" && state->update() != nullptr) {
        return InternalError("state '" + state->name() + "' is updated, and evaluation must change nothing");
      }
    }
    if (layout_.empty()) return OkStatus();
    for (const auto& node : graph.nodes()) {
      const Status status = CheckBucketNode(*node);
      if (!status.ok()) return status.Prepend(node->Describe());
    }
    return OkStatus();
  }

  Status CheckBucketNode(const Node& node) const {
    const int64_t world_size =
        IsOwnOp(node.op()) ? node.attributes().Int("world_size", program_.world_size) : program_.world_size;
    if (world_size != program_.world_size) {
      return InternalError("world_size is " + std::to_string(world_size) + ", the program's is " +
                           std::to_string(program_.world_size));
    }
    if (!IsOwnOp(node.op()) || !node.attributes().Has("bucket")) return OkStatus();
    const int64_t bucket = node.attributes().Int("bucket", -1);
    if (bucket < 0 || bucket >= static_cast<int64_t>(layout_.buckets().size())) return NoBucket(bucket);
    return CheckBucketShape(node, layout_.buckets()[static_cast<size_t>(bucket)]);
  }

  Status CheckBucketShape(const Node& node, const LayoutBucket& bucket) const {
    const std::string_view op = std::string_view(node.op()).substr(kOwnPrefix.size());
    if (op == "BucketPack") {
      RETURN_IF_ERROR(CheckElements("its output", node.output(0), bucket.elements));
      return CheckOffsets(node, node.inputs(), bucket);
    }
    if (op == "BucketUnpack") {
      RETURN_IF_ERROR(CheckElements("its input", node.input(0), bucket.elements));
      return CheckOffsets(node, node.outputs(), bucket);
    }
    if (op == "ReduceScatter" || op == "AllReduce") return CheckElements("its input", node.input(0), bucket.elements);
    if (op == "AllGather") return CheckElements("its output", node.output(0), bucket.elements);
    return OkStatus();
  }

  static Status CheckElements(const std::string& what, const Value* value, int64_t elements) {
    if (value == nullptr || value->type().elements() == elements) return OkStatus();
    return InternalError(what + " '" + value->name() + "' has " + std::to_string(value->type().elements()) +
                         " elements, the Layout's bucket " + std::to_string(elements));
  }

  // Tensors lie where the Layout puts their parameters; what is between them is padding, which stays zero.
  Status CheckOffsets(const Node& node, const std::vector<Value*>& values, const LayoutBucket& bucket) const {
    const std::vector<int64_t> offsets = node.attributes().Ints("offsets");
    if (values.size() != bucket.parameters.size() || offsets.size() != values.size()) {
      return InternalError("it has " + std::to_string(values.size()) + " tensors, the Layout's bucket " +
                           std::to_string(bucket.parameters.size()) + " parameters");
    }
    for (size_t i = 0; i < offsets.size(); ++i) {
      const LayoutParameter& parameter = layout_.parameters()[static_cast<size_t>(bucket.parameters[i])];
      if (offsets[i] != parameter.offset) {
        return InternalError("tensor " + std::to_string(i) + " is at element " + std::to_string(offsets[i]) +
                             ", the Layout has '" + parameter.name + "' at " + std::to_string(parameter.offset));
      }
      RETURN_IF_ERROR(CheckElements("tensor " + std::to_string(i), values[i], parameter.type.elements()));
    }
    return OkStatus();
  }

  // ---- ranks without samples

  static std::vector<const Node*> Collectives(const Graph& graph) {
    std::vector<const Node*> collectives;
    for (const auto& node : graph.nodes()) {
      if (node->def().collective) collectives.push_back(node.get());
    }
    return collectives;
  }

  static bool SameCollective(const Node& a, const Node& b) {
    return a.op() == b.op() && a.attributes() == b.attributes() && a.input(0) != nullptr && b.input(0) != nullptr &&
           a.input(0)->type() == b.input(0)->type();
  }

  Status CheckZeroGraphs() const {
    for (const auto& [name, graph] : program_.graphs()) {
      if (!name.starts_with(kZero)) continue;
      const Graph* full = program_.FindGraph(name.substr(kZero.size()));
      if (full == nullptr) return InternalError("graph '" + name + "' stands in for a graph that is not there");
      const std::vector<const Node*> mine = Collectives(graph), theirs = Collectives(*full);
      const size_t common = std::min(mine.size(), theirs.size());
      for (size_t i = 0; i < common; ++i) {
        if (SameCollective(*mine[i], *theirs[i])) continue;
        return InternalError("collective " + std::to_string(i) + " of graph '" + name + "' is the " +
                             mine[i]->Describe() + ", that of '" + full->name() + "' the " + theirs[i]->Describe() +
                             ": ranks would wait for each other for ever");
      }
      if (mine.size() != theirs.size()) {
        return InternalError("graph '" + name + "' has " + std::to_string(mine.size()) + " collectives, '" +
                             full->name() + "' has " + std::to_string(theirs.size()));
      }
    }
    return OkStatus();
  }

  const Program& program_;
  const Layout& layout_;
};

}  // namespace

Status VerifyProgram(const Program& program) { return ProgramVerifier(program).Run(); }

}  // namespace onnxtrain
