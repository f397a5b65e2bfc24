// SPDX-License-Identifier: Apache-2.0
#include "tests/support/device_runner.h"

#include <map>
#include <set>

#include "graph/op_registry.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

class DeviceRunner {
 public:
  DeviceRunner(Device& device, const Graph& graph, const OpRunnerOptions& options)
      : device_(device), graph_(graph), options_(options) {}

  StatusOr<OpRunnerResult> Run(const NamedTensors& feeds) {
    StreamOptions stream;
    stream.name = "compute";
    ASSIGN_OR_RETURN(stream_, device_.CreateStream(stream));
    ASSIGN_OR_RETURN(status_word_, device_.Allocate(sizeof(uint64_t)));
    RETURN_IF_ERROR(PlaceGiven(feeds));
    int index = 0;
    for (const auto& node : graph_.nodes()) RETURN_IF_ERROR(Launch(*node, index++));
    RETURN_IF_ERROR(stream_->Synchronize());
    return Fetch();
  }

 private:
  Status Place(const Value* value, const Tensor* content) {
    ASSIGN_OR_RETURN(buffers_[value], device_.Allocate(value->type().bytes()));
    // What a kernel does not write is NaN.
    const std::vector<uint8_t> poison(value->type().bytes(), 0xff);
    return device_.CopyToDevice(buffers_[value]->data(),
                                content == nullptr ? static_cast<const void*>(poison.data()) : content->data(),
                                value->type().bytes());
  }

  Status PlaceGiven(const NamedTensors& feeds) {
    for (const std::vector<Value*>* values : {&graph_.inputs(), &graph_.states()}) {
      for (const Value* value : *values) {
        const auto feed = feeds.find(value->name());
        if (feed == feeds.end()) return InvalidDataError("no feed for " + value->name());
        RETURN_IF_ERROR(Place(value, &feed->second));
      }
    }
    return OkStatus();
  }

  StatusOr<std::byte*> AddressOf(const Value* value) {
    if (value == nullptr) return nullptr;
    while (shared_.contains(value)) value = shared_.at(value);
    if (!buffers_.contains(value)) RETURN_IF_ERROR(Place(value, value->constant()));
    return buffers_[value]->data();
  }

  // An output lies where an input does, if the operator allows it and nobody reads the input later.
  void ShareBytes(const Node& node) {
    if (!node.def().aliases) return;
    std::set<const Value*> taken;
    for (const AliasRule& rule : node.def().aliases(node)) {
      const Value* output = node.output(static_cast<size_t>(rule.output));
      const Value* input = node.input(static_cast<size_t>(rule.input));
      if (rule.kind != AliasRule::Kind::kInPlace || output == nullptr || input == nullptr) continue;
      const bool read_once = input->consumers().size() == 1 && input->constant() == nullptr;
      if (!read_once || input->type().bytes() != output->type().bytes() || shared_.contains(output)) continue;
      if (!taken.insert(input).second) continue;
      shared_[output] = input;
    }
  }

  Status Launch(const Node& node, int index) {
    KernelContext context{node};
    context.node_index = index;
    context.accumulation = options_.accumulation;
    context.seed = options_.seed;
    ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, device_.kernels().Create(context));
    ASSIGN_OR_RETURN(std::unique_ptr<Buffer> workspace, device_.Allocate(kernel->workspace_bytes()));
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    for (const Value* value : node.inputs()) {
      ASSIGN_OR_RETURN(const std::byte* const address, AddressOf(value));
      inputs.push_back(address);
    }
    if (options_.share_bytes) ShareBytes(node);
    for (const Value* value : node.outputs()) {
      ASSIGN_OR_RETURN(std::byte* const address, AddressOf(value));
      outputs.push_back(address);
    }
    const RunContext run{options_.micro_batch};
    LaunchArgs args;
    args.inputs = inputs;
    args.outputs = outputs;
    args.workspace = kernel->workspace_bytes() == 0 ? nullptr : workspace->data();
    args.status_word = reinterpret_cast<uint64_t*>(status_word_->data());
    args.run = &run;
    stream_->Launch(*kernel, args);
    return stream_->Synchronize().Prepend(node.Describe());  // before the kernel and its workspace go
  }

  StatusOr<OpRunnerResult> Fetch() {
    OpRunnerResult result;
    for (const Value* output : graph_.outputs()) {
      Tensor tensor(output->type());
      RETURN_IF_ERROR(device_.CopyToHost(tensor.data(), *AddressOf(output), tensor.bytes()));
      result.fetches[output->name()] = std::move(tensor);
    }
    RETURN_IF_ERROR(device_.CopyToHost(&result.status_word, status_word_->data(), sizeof(uint64_t)));
    return result;
  }

  Device& device_;
  const Graph& graph_;
  const OpRunnerOptions& options_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Buffer> status_word_;
  std::map<const Value*, std::unique_ptr<Buffer>> buffers_;
  std::map<const Value*, const Value*> shared_;  // outputs that lie where an input does
};

}  // namespace

StatusOr<OpRunnerResult> RunGraphOn(Device& device, const Graph& graph, const NamedTensors& feeds,
                                    const OpRunnerOptions& options) {
  return DeviceRunner(device, graph, options).Run(feeds);
}

}  // namespace onnxtrain
