// SPDX-License-Identifier: Apache-2.0
// The synthetic registry and the synthetic training step of random_graph.h.
#include <algorithm>
#include <map>

#include "tests/support/random_graph.h"

namespace onnxtrain {
namespace {

using Kind = AliasRule::Kind;
using Types = StatusOr<std::vector<TensorType>>;

Types SameAsFirst(const InferContext& context) { return std::vector<TensorType>{context.inputs.at(0)}; }

Types InferProduct(const InferContext& context) {
  return std::vector<TensorType>{
      {context.inputs[0].dtype, {context.inputs[0].shape.at(0), context.inputs[1].shape.at(1)}}};
}

// Of a weight [n, m] from activations [b, n] and the gradient [b, m].
Types InferWeightGradient(const InferContext& context) {
  return std::vector<TensorType>{
      {context.inputs[0].dtype, {context.inputs[0].shape.at(1), context.inputs[1].shape.at(1)}}};
}

Types InferReshape(const InferContext& context) {
  const auto shape = context.constants.at(1)->values<int64_t>();
  return std::vector<TensorType>{{context.inputs[0].dtype, Shape(shape.begin(), shape.end())}};
}

OpDef Def(std::string name, InferFn infer, std::vector<AliasRule> rules) {
  OpDef def;
  def.name = std::move(name);
  def.infer = std::move(infer);
  if (!rules.empty()) def.aliases = [rules](const Node&) { return rules; };
  return def;
}

void AddRealCollectives(OpRegistry& registry) {
  for (const char* name : {"AllReduce", "ReduceScatter", "AllGather", "BucketPack", "BucketUnpack"}) {
    const OpDef* def = OpRegistry::Default().Find(std::string(kOwnPrefix) + name);
    CHECK(def != nullptr);
    registry.Add(*def);
  }
}

// Builds MakeSyntheticStep's graph.
class StepMaker {
 public:
  explicit StepMaker(const SyntheticStepOptions& options) : options_(options), graph_(SyntheticRegistry(), "step") {}

  Graph Run() {
    for (int bucket = 0; bucket * options_.layers_per_bucket < options_.layers; ++bucket) AddGather(bucket);
    Value* x = graph_.AddInput("x", {DType::kFloat, {options_.batch, options_.width}});
    std::vector<Value*> activations = {x};
    for (int layer = 0; layer < options_.layers; ++layer) {
      Value* product = Op("MatMul", {activations.back(), weights_[Index(layer)]}, "forward" + std::to_string(layer));
      activations.push_back(Op("Relu", {product}, "active" + std::to_string(layer)));
    }
    graph_.AddOutput(activations.back());
    Value* gradient = Op("Mul", {activations.back(), activations.back()}, "loss_gradient");
    for (int layer = options_.layers - 1; layer >= 0; --layer) {
      const std::string name = std::to_string(layer);
      gradients_[layer] = Op("WeightGradient", {activations[Index(layer)], gradient}, "weight_gradient" + name);
      if (layer % options_.layers_per_bucket == 0) AddReduce(layer / options_.layers_per_bucket);
      if (layer > 0) gradient = Op("MatMul", {gradient, weights_[Index(layer)]}, "input_gradient" + name);
    }
    for (size_t bucket = 0; bucket < shards_.size(); ++bucket) {
      Value* shard = shards_[bucket];
      graph_.SetUpdate(shard,
                       Op("Add", {shard, reduced_.at(static_cast<int>(bucket))}, "optimizer" + std::to_string(bucket)));
    }
    return std::move(graph_);
  }

 private:
  static size_t Index(int i) { return static_cast<size_t>(i); }
  int64_t Elements() const { return options_.width * options_.width; }

  std::vector<Value*> Ops(std::string op, std::vector<Value*> inputs, std::vector<std::string> names,
                          Attributes attributes) {
    StatusOr<Node*> node = graph_.Insert(
        nullptr, NodeSpec{std::move(op), std::move(inputs), std::move(attributes), std::move(names), "", {}});
    CHECK_WITH(node.ok(), node.status().message());
    return (*node)->outputs();
  }
  Value* Op(std::string op, std::vector<Value*> inputs, std::string name, Attributes attributes = {}) {
    return Ops(std::move(op), std::move(inputs), {std::move(name)}, std::move(attributes))[0];
  }

  int LayersOf(int bucket) const {
    return std::min(options_.layers_per_bucket, options_.layers - bucket * options_.layers_per_bucket);
  }
  int64_t BucketElements(int bucket) const {
    const int64_t unit = 128 * options_.world_size;
    return (LayersOf(bucket) * Elements() + unit - 1) / unit * unit;
  }
  // Of the layers of a bucket in the given direction.
  std::vector<int64_t> Offsets(int bucket) const {
    std::vector<int64_t> offsets;
    for (int i = 0; i < LayersOf(bucket); ++i) offsets.push_back(i * Elements());
    return offsets;
  }

  void AddGather(int bucket) {
    const std::string name = std::to_string(bucket);
    const int64_t elements = BucketElements(bucket);
    shards_.push_back(graph_.AddState("shard" + name, {DType::kFloat, {elements / options_.world_size}}));
    Value* replica = graph_.AddState("replica" + name, {DType::kFloat, {elements}});
    Value* gathered = Op("onnxtrain.AllGather", {shards_.back()}, "gathered" + name,
                         {{"world_size", int64_t{options_.world_size}}, {"bucket", int64_t{bucket}}});
    graph_.SetUpdate(replica, gathered);
    std::vector<std::string> names;
    std::vector<std::string> shapes;
    for (int i = 0; i < LayersOf(bucket); ++i) {
      names.push_back("weight" + std::to_string(bucket * options_.layers_per_bucket + i));
      shapes.push_back(std::to_string(options_.width) + "," + std::to_string(options_.width));
    }
    const std::vector<Value*> weights =
        Ops("onnxtrain.BucketUnpack", {gathered}, names,
            {{"bucket", int64_t{bucket}}, {"offsets", Offsets(bucket)}, {"shapes", shapes}});
    weights_.insert(weights_.end(), weights.begin(), weights.end());
  }

  void AddReduce(int bucket) {
    const std::string name = std::to_string(bucket);
    std::vector<Value*> parts;
    for (int i = 0; i < LayersOf(bucket); ++i) parts.push_back(gradients_.at(bucket * options_.layers_per_bucket + i));
    Value* packed =
        Op("onnxtrain.BucketPack", parts, "bucket" + name,
           {{"bucket", int64_t{bucket}}, {"elements", BucketElements(bucket)}, {"offsets", Offsets(bucket)}});
    reduced_[bucket] =
        Op("onnxtrain.ReduceScatter", {packed}, "reduced" + name,
           {{"op", std::string("sum")}, {"world_size", int64_t{options_.world_size}}, {"bucket", int64_t{bucket}}});
  }

  const SyntheticStepOptions options_;
  Graph graph_;
  std::vector<Value*> weights_;
  std::vector<Value*> shards_;
  std::map<int, Value*> gradients_;
  std::map<int, Value*> reduced_;
};

}  // namespace

const OpRegistry& SyntheticRegistry() {
  static const OpRegistry registry = [] {
    OpRegistry made;
    made.Add(Def("Add", SameAsFirst, {{Kind::kInPlace, 0, 0}, {Kind::kInPlace, 0, 1}}));
    made.Add(Def("Mul", SameAsFirst, {{Kind::kInPlace, 0, 0}, {Kind::kInPlace, 0, 1}}));
    made.Add(Def("Relu", SameAsFirst, {{Kind::kInPlace, 0, 0}}));
    made.Add(Def("MatMul", InferProduct, {}));
    made.Add(Def("WeightGradient", InferWeightGradient, {}));
    made.Add(Def("Reshape", InferReshape, {{Kind::kView, 0, 0}}));
    AddRealCollectives(made);
    return made;
  }();
  return registry;
}

Graph MakeSyntheticStep(const SyntheticStepOptions& options) { return StepMaker(options).Run(); }

}  // namespace onnxtrain
