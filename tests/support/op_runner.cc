// SPDX-License-Identifier: Apache-2.0
#include "tests/support/op_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "graph/op_registry.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

constexpr size_t kGuardBytes = 128;
constexpr std::byte kGuard{0xa5};
constexpr std::byte kPoison{0xff};

// 64-byte aligned bytes that start as poison, with a guard behind.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes)
      : bytes_(bytes), storage_(Tensor(TensorType{DType::kUint8, {static_cast<int64_t>(bytes + kGuardBytes)}})) {
    std::fill_n(storage_.data(), bytes_, kPoison);
    std::fill_n(storage_.data() + bytes_, kGuardBytes, kGuard);
  }
  std::byte* data() { return storage_.data(); }
  bool intact() const {
    const std::byte* guard = storage_.data() + bytes_;
    return std::all_of(guard, guard + kGuardBytes, [](std::byte b) { return b == kGuard; });
  }

 private:
  size_t bytes_;
  Tensor storage_;
};

const KernelRegistry& Kernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry made;
    AddAllKernels(made);
    return made;
  }();
  return registry;
}

// One run: where each value lives, and who still reads it.
class Runner {
 public:
  Runner(const Graph& graph, const OpRunnerOptions& options) : graph_(graph), options_(options) {
    for (const std::string& name : options.fetches) fetches_.push_back(graph.FindValue(name));
    if (options.fetches.empty()) fetches_ = graph.outputs();
  }

  Status Feed(const Value* value, const NamedTensors& feeds) {
    auto found = feeds.find(value->name());
    if (found == feeds.end()) return InvalidDataError("no feed of '" + value->name() + "'");
    return Place(value, found->second);
  }

  Status Place(const Value* value, const Tensor& tensor) {
    if (tensor.type() != value->type()) {
      return InvalidDataError("'" + value->name() + "' is " + ToString(value->type()) + ", not " +
                              ToString(tensor.type()));
    }
    std::byte* bytes = Allocate(value, tensor.bytes());
    if (tensor.bytes() > 0) std::memcpy(bytes, tensor.data(), tensor.bytes());
    return OkStatus();
  }

  Status Launch(const Node& node, int index) {
    KernelContext context{.node = node,
                          .node_index = index,
                          .accumulation = options_.accumulation,
                          .threads = options_.threads,
                          .seed = options_.seed};
    ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, Kernels().Create(context));
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    for (const Value* input : node.inputs()) inputs.push_back(input == nullptr ? nullptr : places_.at(input));
    for (size_t i = 0; i < node.outputs().size(); ++i) outputs.push_back(OutputPlace(node, i));
    GuardedBuffer workspace(kernel->workspace_bytes());
    RunContext run{options_.micro_batch};
    LaunchArgs args{
        .inputs = inputs, .outputs = outputs, .workspace = workspace.data(), .status_word = &status_word_, .run = &run};
    RETURN_IF_ERROR(kernel->Launch(args).Prepend(node.Describe()));
    if (!workspace.intact()) return InternalError("workspace overrun by " + node.Describe());
    for (auto& buffer : buffers_) {
      if (!buffer->intact()) return InternalError("buffer overrun by " + node.Describe());
    }
    position_[&node] = index;
    return OkStatus();
  }

  StatusOr<OpRunnerResult> Result() {
    OpRunnerResult result;
    result.status_word = status_word_;
    for (const Value* value : fetches_) {
      if (value == nullptr) return UsageError("unknown fetch");
      Tensor tensor(value->type());
      if (tensor.bytes() > 0) std::memcpy(tensor.data(), places_.at(value), tensor.bytes());
      result.fetches.emplace(value->name(), std::move(tensor));
    }
    return result;
  }

 private:
  std::byte* Allocate(const Value* value, size_t bytes) {
    buffers_.push_back(std::make_unique<GuardedBuffer>(bytes));
    return places_[value] = buffers_.back()->data();
  }

  bool ReadLater(const Value* value, const Node& node) const {
    if (std::find(fetches_.begin(), fetches_.end(), value) != fetches_.end()) return true;
    for (const auto& [other, place] : places_) {  // another value in the same bytes counts as a reader
      if (other != value && place == places_.at(value)) return true;
    }
    if (std::count(value->consumers().begin(), value->consumers().end(), &node) > 1) return true;
    return std::any_of(value->consumers().begin(), value->consumers().end(),
                       [&](const Node* consumer) { return consumer != &node && !position_.contains(consumer); });
  }

  std::byte* OutputPlace(const Node& node, size_t index) {
    const Value* output = node.output(index);
    if (output == nullptr) return nullptr;
    if (options_.share_bytes && node.def().aliases) {
      for (const AliasRule& rule : node.def().aliases(node)) {
        const Value* input = node.input(static_cast<size_t>(rule.input));
        if (static_cast<size_t>(rule.output) != index || input == nullptr) continue;
        if (rule.kind == AliasRule::Kind::kPack || ReadLater(input, node)) continue;
        return places_[output] = places_.at(input) + rule.offset;
      }
    }
    return Allocate(output, output->type().bytes());
  }

  const Graph& graph_;
  const OpRunnerOptions& options_;
  std::vector<Value*> fetches_;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers_;
  std::map<const Value*, std::byte*> places_;
  std::map<const Node*, int> position_;  // of nodes that have run
  uint64_t status_word_ = 0;
};

uint64_t Mix(uint64_t x) {  // SplitMix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

double RandomValue(DType dtype, uint64_t bits, double low, double high) {
  const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
  if (dtype == DType::kBool) return unit < 0.5 ? 0 : 1;
  if (IsFloating(dtype)) return low + unit * (high - low);
  return std::floor(low + unit * (high - low + 1));
}

}  // namespace

StatusOr<OpRunnerResult> RunGraph(const Graph& graph, const NamedTensors& feeds, const OpRunnerOptions& options) {
  Runner runner(graph, options);
  for (const Value* input : graph.inputs()) RETURN_IF_ERROR(runner.Feed(input, feeds));
  for (const Value* state : graph.states()) RETURN_IF_ERROR(runner.Feed(state, feeds));
  for (const Value* constant : graph.constants()) RETURN_IF_ERROR(runner.Place(constant, *constant->constant()));
  int index = 0;
  for (const auto& node : graph.nodes()) RETURN_IF_ERROR(runner.Launch(*node, index++));
  return runner.Result();
}

Status AddOp(Graph& graph, std::string_view op, const std::vector<OpInput>& inputs, Attributes attributes,
             size_t outputs) {
  std::vector<Value*> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    if (!inputs[i].tensor.has_value()) {
      values.push_back(nullptr);
    } else if (inputs[i].constant) {
      values.push_back(graph.AddConstant(name, *inputs[i].tensor));
    } else {
      values.push_back(graph.AddInput(name, inputs[i].tensor->type()));
    }
  }
  NodeSpec spec{std::string(op), std::move(values), std::move(attributes), {}, "test", {}};
  for (size_t i = 0; i < outputs; ++i) spec.output_names.push_back("y" + std::to_string(i));
  ASSIGN_OR_RETURN(Node * node, graph.Insert(nullptr, std::move(spec)));
  for (Value* output : node->outputs()) graph.AddOutput(output);
  return OkStatus();
}

NamedTensors FeedsOf(const std::vector<OpInput>& inputs) {
  NamedTensors feeds;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].tensor.has_value() && !inputs[i].constant) {
      feeds.emplace("x" + std::to_string(i), *inputs[i].tensor);
    }
  }
  return feeds;
}

NamedTensors RunEveryWay(const Graph& graph, const NamedTensors& feeds) {
  StatusOr<OpRunnerResult> first = RunGraph(graph, feeds);
  if (!first.ok()) {
    ADD_FAILURE() << first.status().message();
    return {};
  }
  for (int threads = 1; threads <= 3; ++threads) {
    for (bool share : {false, true}) {
      StatusOr<OpRunnerResult> other = RunGraph(graph, feeds, {.threads = threads, .share_bytes = share});
      if (!other.ok()) {
        ADD_FAILURE() << other.status().message();
        continue;
      }
      EXPECT_EQ(other->status_word, first->status_word);
      for (const auto& [name, tensor] : first->fetches) {
        SCOPED_TRACE(name + " with " + std::to_string(threads) + " threads" + (share ? ", shared bytes" : ""));
        ExpectIdentical(other->fetches.at(name), tensor);
      }
    }
  }
  return std::move(first->fetches);
}

std::vector<Tensor> RunOp(std::string_view op, const std::vector<OpInput>& inputs, Attributes attributes,
                          size_t outputs) {
  SCOPED_TRACE(std::string(op));
  Graph graph(OpRegistry::Default());
  const Status added = AddOp(graph, op, inputs, std::move(attributes), outputs);
  std::vector<Tensor> results(outputs);
  if (!added.ok()) {
    ADD_FAILURE() << added.message();
    return results;
  }
  NamedTensors fetched = RunEveryWay(graph, FeedsOf(inputs));
  for (size_t i = 0; i < outputs && !fetched.empty(); ++i) {
    results[i] = std::move(fetched.at(graph.outputs()[i]->name()));
  }
  return results;
}

Tensor RandomTensor(DType dtype, Shape shape, uint64_t seed, double low, double high) {
  const bool exact = dtype == DType::kDouble || IsInteger(dtype) || dtype == DType::kBool;
  Tensor values(TensorType{exact && !IsFloating(dtype) ? DType::kInt64 : DType::kDouble, std::move(shape)});
  for (int64_t i = 0; i < values.elements(); ++i) {
    const double value = RandomValue(dtype, Mix(Mix(seed) + static_cast<uint64_t>(i)), low, high);
    if (values.dtype() == DType::kInt64) {
      values.values<int64_t>()[static_cast<size_t>(i)] = static_cast<int64_t>(value);
    } else {
      values.values<double>()[static_cast<size_t>(i)] = value;
    }
  }
  return values.CastTo(dtype);
}

void ExpectNear(const Tensor& actual, const Tensor& expected, double tolerance) {
  ASSERT_EQ(ToString(actual.type()), ToString(expected.type()));
  for (int64_t i = 0; i < actual.elements(); ++i) {
    const double a = actual.DoubleAt(i);
    const double e = expected.DoubleAt(i);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    ASSERT_TRUE(std::abs(a - e) <= tolerance * std::max(1.0, std::abs(e)))
        << "element " << i << " is " << a << ", expected " << e << ", off by " << a - e;
  }
}

void ExpectIdentical(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(ToString(actual.type()), ToString(expected.type()));
  if (actual.Identical(expected)) return;
  for (int64_t i = 0; i < actual.elements(); ++i) {
    const size_t size = SizeOf(actual.dtype());
    const size_t offset = static_cast<size_t>(i) * size;
    ASSERT_EQ(std::memcmp(actual.data() + offset, expected.data() + offset, size), 0)
        << "element " << i << " is " << actual.DoubleAt(i) << ", expected " << expected.DoubleAt(i);
  }
}

}  // namespace onnxtrain
