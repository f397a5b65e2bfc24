// SPDX-License-Identifier: Apache-2.0
// Runs a graph node by node on the calling thread, every value in memory of its own: for `grad`, for conformance tests, and to
// find the first non-finite value of a step. No plan, no streams, no reuse of memory; collectives are refused.
#ifndef ONNXTRAIN_RUNTIME_NODE_RUNNER_H_
#define ONNXTRAIN_RUNTIME_NODE_RUNNER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/kernel.h"

namespace onnxtrain {

struct NodeRunnerOptions {
  int threads = 1;
  uint64_t seed = 0;
  int rank = 0;
  int world_size = 1;
  int accumulation = 1;
  int64_t micro_batch = 0;
  const Layout* layout = nullptr;
};

class NodeRunner {
 public:
  // Called after each node; an error ends the run with it.
  using Observer = std::function<Status(const Node& node, const NodeRunner& runner)>;

  // Graph and registry are borrowed. Fails when a kernel is missing: all such nodes are named in one message.
  static StatusOr<std::unique_ptr<NodeRunner>> Create(const Graph& graph, const KernelRegistry& kernels,
                                                      const NodeRunnerOptions& options);

  // Inputs and states by name; keep their bytes until set again. The type must fit exactly.
  Status Set(const std::string& name, const Tensor& tensor);
  // Runs all nodes in order. Updates of states are written back only by ApplyUpdates. Fails when a kernel set the status word
  // (an index or label out of range): the message names the node.
  Status Run(const Observer& observer = nullptr);
  // Every state becomes its update.
  void ApplyUpdates();
  // Any value of the graph after Run.
  const Tensor& value(const Value* value) const { return values_.at(value); }
  StatusOr<Tensor> Get(const std::string& name) const;

 private:
  struct Step {
    const Node* node = nullptr;
    std::unique_ptr<Kernel> kernel;
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    std::vector<std::byte> workspace;
  };

  NodeRunner(const Graph& graph, const NodeRunnerOptions& options) : graph_(graph), options_(options) {}
  Status CreateSteps(const KernelRegistry& kernels);
  void BindSteps();
  Status CheckStatusWord(uint64_t word) const;

  const Graph& graph_;
  const NodeRunnerOptions options_;
  std::map<const Value*, Tensor> values_;
  std::vector<Step> steps_;
};

// Bytes of a graph input as it was fed; null when they are not at hand.
using FedBytes = std::function<const std::byte*(const Value* input)>;

// The sentence for a status word, naming the node of the graph and, where labels or indices are fed, the first one that
// is out of range with its place.
Status DescribeFault(uint64_t status_word, const Graph& graph, const FedBytes& fed = nullptr);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_NODE_RUNNER_H_
