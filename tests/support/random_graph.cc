// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_graph.h"

#include <algorithm>
#include <random>

namespace onnxtrain {
namespace {

// Not std::uniform_int_distribution: its numbers differ between libraries.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int Below(int limit) { return static_cast<int>(engine_() % static_cast<uint64_t>(limit)); }
  bool Chance(int percent) { return Below(100) < percent; }
  float Unit() { return static_cast<float>(static_cast<double>(engine_() >> 11) * 0x1p-52 - 1.0); }

 private:
  std::mt19937_64 engine_;
};

class GraphMaker {
 public:
  GraphMaker(uint64_t seed, const OpRegistry& registry, const RandomGraphOptions& options)
      : dice_(seed), options_(options), graph_(registry, "random" + std::to_string(seed)) {}

  Graph Run() {
    AddSources();
    while (static_cast<int>(graph_.nodes().size()) < options_.nodes) AddSomething();
    AddUpdates();
    AddOutputs();
    return std::move(graph_);
  }

 private:
  static const std::vector<Shape>& Shapes() {
    static const std::vector<Shape> shapes = {{4, 4}, {16}, {3, 5}, {15}, {64}, {8, 8}, {1}, {130}, {0}};
    return shapes;
  }

  Shape RandomShape() { return Shapes()[static_cast<size_t>(dice_.Below(static_cast<int>(Shapes().size())))]; }

  void AddSources() {
    for (int i = 0; i < 2 + dice_.Below(3); ++i) {
      values_.push_back(graph_.AddInput("x" + std::to_string(i), {DType::kFloat, RandomShape()}));
    }
    for (int i = 0; i < 2 + dice_.Below(5); ++i) {
      values_.push_back(graph_.AddState("s" + std::to_string(i), {DType::kFloat, RandomShape()}));
    }
  }

  // Mostly a recent one, so that lifetimes are short; sometimes any.
  Value* Pick() {
    const int count = static_cast<int>(values_.size());
    const int recent = dice_.Chance(60) ? std::min(count, 6) : count;
    return values_[static_cast<size_t>(count - 1 - dice_.Below(recent))];
  }

  Value* PickOf(const TensorType& type) {
    std::vector<Value*> fitting;
    for (Value* value : values_) {
      if (value->type() == type) fitting.push_back(value);
    }
    return fitting.empty() ? nullptr : fitting[static_cast<size_t>(dice_.Below(static_cast<int>(fitting.size())))];
  }

  std::vector<Value*> Emit(std::string op, std::vector<Value*> inputs, Attributes attributes = {}, size_t outputs = 1) {
    NodeSpec spec{std::move(op), std::move(inputs), std::move(attributes), {}, "", {}};
    for (size_t i = 0; i < outputs; ++i) spec.output_names.push_back("v" + std::to_string(++named_));
    StatusOr<Node*> node = graph_.Insert(nullptr, std::move(spec));
    CHECK_WITH(node.ok(), node.status().message());
    values_.insert(values_.end(), (*node)->outputs().begin(), (*node)->outputs().end());
    return (*node)->outputs();
  }

  void AddSomething() {
    const int kind = dice_.Below(options_.collectives ? 10 : 7);
    if (kind < 2) return AddUnary();
    if (kind < 4) return AddBinary();
    if (kind == 4) return AddProduct();
    if (kind < 7) return AddReshape();
    if (kind == 7) return AddLooseCollective();
    AddBucket();
  }

  void AddUnary() { Emit("Relu", {Pick()}); }

  void AddBinary() {
    Value* left = Pick();
    Emit(dice_.Chance(50) ? "Add" : "Mul", {left, PickOf(left->type())});
  }

  void AddProduct() {
    Value* left = PickOf({DType::kFloat, dice_.Chance(50) ? Shape{4, 4} : Shape{8, 8}});
    if (left != nullptr) Emit("MatMul", {left, PickOf(left->type())});
  }

  Value* Reshaped(Value* value, const Shape& shape) {
    return Emit("Reshape", {value, graph_.AddConstant("shape", Tensor::Ints(shape))})[0];
  }

  void AddReshape() {
    Value* value = Pick();
    std::vector<Shape> fitting;
    for (const Shape& shape : Shapes()) {
      if (ElementsOf(shape) == value->type().elements()) fitting.push_back(shape);
    }
    if (fitting.empty()) return AddUnary();
    Reshaped(value, fitting[static_cast<size_t>(dice_.Below(static_cast<int>(fitting.size())))]);
  }

  void AddLooseCollective() {
    Value* value = Pick();
    if (value->type().rank() == 1 && dice_.Chance(50)) {
      if (value->type().elements() > 200) return;
      Emit("onnxtrain.AllGather", {value}, {{"world_size", int64_t{options_.world_size}}});
      return;
    }
    Emit("onnxtrain.AllReduce", {value}, {{"op", std::string("sum")}});
  }

  // Parts at aligned offsets with gaps, reduced, and what came of it taken apart.
  void AddBucket() {
    std::vector<Value*> parts;
    std::vector<int64_t> offsets;
    int64_t end = 0;
    for (int i = 0; i < 1 + dice_.Below(4); ++i) {
      Value* part = dice_.Chance(30) ? Pick() : Emit("Relu", {Pick()})[0];
      parts.push_back(part);
      offsets.push_back(end);
      end = (end + part->type().elements() + 63) / 64 * 64;
    }
    const int64_t unit = 64 * options_.world_size;
    const int64_t elements = (end + unit - 1) / unit * unit;
    Value* bucket =
        Emit("onnxtrain.BucketPack", parts, {{"elements", elements}, {"offsets", offsets}, {"bucket", int64_t{0}}})[0];
    if (dice_.Chance(30)) AddBinaryOn(bucket);
    if (dice_.Chance(50)) {
      Emit("onnxtrain.ReduceScatter", {bucket},
           {{"op", std::string("sum")}, {"world_size", int64_t{options_.world_size}}, {"bucket", int64_t{0}}});
      return;
    }
    Value* reduced = Emit("onnxtrain.AllReduce", {bucket}, {{"op", std::string("sum")}})[0];
    std::vector<std::string> shapes;
    for (const Value* part : parts) shapes.push_back(ShapeText(part->type().shape));
    Emit("onnxtrain.BucketUnpack", {reduced}, {{"bucket", int64_t{0}}, {"offsets", offsets}, {"shapes", shapes}},
         parts.size());
  }

  void AddBinaryOn(Value* value) { Emit("Mul", {value, value}); }

  static std::string ShapeText(const Shape& shape) {
    std::string text;
    for (int64_t dim : shape) text += (text.empty() ? "" : ",") + std::to_string(dim);
    return text;
  }

  void AddUpdates() {
    const std::vector<Value*> states = graph_.states();
    for (Value* state : states) {
      if (dice_.Chance(15)) continue;
      if (dice_.Chance(60)) {  // the usual: a function of the old state
        graph_.SetUpdate(state, Emit("Add", {state, PickOf(state->type())})[0]);
      } else {
        graph_.SetUpdate(state, PickOf(state->type()));
      }
    }
  }

  void AddOutputs() {
    for (int i = 0; i < 1 + dice_.Below(4); ++i) {
      Value* value = Pick();
      const std::vector<Value*>& outputs = graph_.outputs();
      if (std::find(outputs.begin(), outputs.end(), value) == outputs.end()) graph_.AddOutput(value);
    }
  }

  Dice dice_;
  const RandomGraphOptions options_;
  Graph graph_;
  std::vector<Value*> values_;
  int named_ = 0;
};

}  // namespace

Graph MakeRandomGraph(uint64_t seed, const OpRegistry& registry, const RandomGraphOptions& options) {
  return GraphMaker(seed, registry, options).Run();
}

std::map<std::string, Tensor> MakeRandomTensors(const Graph& graph, uint64_t seed) {
  Dice dice(seed);
  std::map<std::string, Tensor> tensors;
  for (const std::vector<Value*>* values : {&graph.inputs(), &graph.states()}) {
    for (const Value* value : *values) {
      Tensor tensor(value->type());
      for (float& element : tensor.values<float>()) element = dice.Unit();
      tensors.emplace(value->name(), std::move(tensor));
    }
  }
  return tensors;
}

}  // namespace onnxtrain
