// SPDX-License-Identifier: Apache-2.0
#include "passes/bucket_states.h"

#include <algorithm>
#include <numeric>

#include "graph/graph_builder.h"
#include "graph/op_registry.h"
#include "passes/step_structure.h"

namespace onnxtrain {
namespace {

constexpr const char* kOrigin = "shard_optimizer";

std::string ShapeText(const Shape& shape) {
  std::string text;
  for (const int64_t dim : shape) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return text;
}

// Place of the first node but optimizers that reads a parameter of the bucket.
int FirstUse(const Graph& graph, const NodeOrder& order, const BucketStates& bucket) {
  int first = static_cast<int>(graph.nodes().size());
  for (const std::string& name : bucket.members) {
    const Value* value = graph.FindValue(name);
    if (value == nullptr) continue;
    for (const Node* consumer : value->consumers()) {
      if (FindOptimizer(consumer->op()) == nullptr) first = std::min(first, order.PlaceOf(consumer));
    }
  }
  return first;
}

StatusOr<Value*> Gather(Graph& graph, Node* before, const BucketStates& bucket, int world_size) {
  GraphBuilder build(graph, before, kOrigin);
  Value* shard = build.Cast(StateValue(graph, bucket.parameter), bucket.replica.type.dtype);
  RETURN_IF_ERROR(build.status());
  NodeSpec spec{"onnxtrain.AllGather",
                {shard},
                {{"bucket", static_cast<int64_t>(bucket.bucket)}, {"world_size", static_cast<int64_t>(world_size)}},
                {"bucket" + std::to_string(bucket.bucket) + "_gathered"},
                kOrigin,
                {}};
  ASSIGN_OR_RETURN(Node * gather, graph.Insert(before, std::move(spec)));
  graph.SetUpdate(StateValue(graph, bucket.replica), gather->output(0));
  return gather->output(0);
}

// The parameter was gathered in the type to which these nodes cast it.
Status ReplaceCasts(Graph& graph, const Value* state, Value* gathered) {
  const std::vector<Node*> casts = state->consumers();
  for (Node* cast : casts) {
    RETURN_IF_ERROR(graph.ReplaceUses(cast->output(0), gathered));
    graph.Erase(cast);
  }
  return OkStatus();
}

// What the graph read of a whole parameter, it reads of the unpacked bucket.
Status Unpack(Graph& graph, Node* before, const Layout& layout, const BucketStates& bucket, Value* whole) {
  NodeSpec spec{"onnxtrain.BucketUnpack", {whole}, UnpackAttributes(layout, bucket.bucket), {}, kOrigin, {}};
  for (const std::string& name : bucket.members) spec.output_names.push_back(name + "_whole");
  ASSIGN_OR_RETURN(Node * unpack, graph.Insert(before, std::move(spec)));
  for (size_t i = 0; i < bucket.members.size(); ++i) {
    Value* state = graph.FindValue(bucket.members[i]);
    if (state == nullptr) continue;
    graph.SetUpdate(state, nullptr);
    if (state->type() == unpack->output(i)->type()) {
      RETURN_IF_ERROR(graph.ReplaceUses(state, unpack->output(i)));
    } else {
      RETURN_IF_ERROR(ReplaceCasts(graph, state, unpack->output(i)));
    }
    graph.EraseValue(state);
  }
  return OkStatus();
}

}  // namespace

DType ReplicaType(const Program& program, const std::string& state) {
  const DType own = program.FindState(state)->type.dtype;
  DType common = DType::kUndefined;
  for (const auto& [name, graph] : program.graphs()) {
    const Value* value = graph.FindValue(state);
    if (value == nullptr) continue;
    for (const Node* consumer : value->consumers()) {
      if (FindOptimizer(consumer->op()) != nullptr) continue;
      const bool narrows = consumer->op() == "Cast" && SizeOf(consumer->output(0)->type().dtype) < SizeOf(own);
      const DType read = narrows ? consumer->output(0)->type().dtype : own;
      if (common != DType::kUndefined && common != read) return own;
      common = read;
    }
  }
  return common == DType::kUndefined ? own : common;
}

StateEntry BucketEntry(const Program& program, int bucket, std::string_view role, StateClass state_class,
                       bool sharded) {
  const Layout& layout = program.layout();
  const LayoutBucket& shape = layout.buckets()[static_cast<size_t>(bucket)];
  const std::string name = "bucket" + std::to_string(bucket) + "." + std::string(role);
  return {.name = UniqueStateName(program, name),
          .type = {shape.dtype, {sharded ? layout.shard_elements(bucket) : shape.elements}},
          .state_class = state_class,
          .role = std::string(role),
          .parameter = "",
          .bucket = bucket,
          .sharded = sharded};
}

Attributes UnpackAttributes(const Layout& layout, int bucket) {
  std::vector<int64_t> offsets;
  std::vector<std::string> shapes;
  for (const int index : layout.buckets()[static_cast<size_t>(bucket)].parameters) {
    const LayoutParameter& parameter = layout.parameters()[static_cast<size_t>(index)];
    offsets.push_back(parameter.offset);
    shapes.push_back(ShapeText(parameter.type.shape));
  }
  return {{"bucket", static_cast<int64_t>(bucket)}, {"offsets", offsets}, {"shapes", shapes}};
}

std::vector<size_t> BucketsByFirstUse(const Graph& graph, const std::vector<BucketStates>& buckets) {
  const NodeOrder order(graph);
  std::vector<int> first;
  for (const BucketStates& bucket : buckets) first.push_back(FirstUse(graph, order, bucket));
  std::vector<size_t> sorted(buckets.size());
  std::iota(sorted.begin(), sorted.end(), size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) { return first[a] < first[b]; });
  return sorted;
}

Status ReadFromBuckets(Graph& graph, const Layout& layout, const std::vector<BucketStates>& buckets, bool gathers) {
  const NodeOrder order(graph);
  const std::vector<size_t> by_first_use = BucketsByFirstUse(graph, buckets);
  std::vector<Value*> wholes(buckets.size(), nullptr);
  for (const size_t index : by_first_use) {
    if (gathers) {
      ASSIGN_OR_RETURN(wholes[index], Gather(graph, order.Behind(-1), buckets[index], layout.world_size()));
    }
  }
  for (const size_t index : by_first_use) {
    const BucketStates& bucket = buckets[index];
    const bool used = std::any_of(bucket.members.begin(), bucket.members.end(),
                                  [&](const std::string& name) { return graph.FindValue(name) != nullptr; });
    if (!used) continue;
    if (!gathers) wholes[index] = StateValue(graph, bucket.replica);
    Node* const before = order.Behind(FirstUse(graph, order, bucket) - 1);
    RETURN_IF_ERROR(Unpack(graph, before, layout, bucket, wholes[index]));
  }
  return OkStatus();
}

Graph MakeGatherGraph(const OpRegistry& registry, const Layout& layout, const std::vector<BucketStates>& buckets,
                      const std::vector<size_t>& order) {
  Graph graph(registry, "gather");
  for (const size_t index : order) {
    const StatusOr<Value*> gathered = Gather(graph, nullptr, buckets[index], layout.world_size());
    CHECK_WITH(gathered.ok(), gathered.status().message());
  }
  return graph;
}

}  // namespace onnxtrain
