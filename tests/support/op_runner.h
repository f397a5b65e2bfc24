// SPDX-License-Identifier: Apache-2.0
// Runs a graph node by node on the CPU kernels, on the calling thread: no plan, no device, no streams. Tests of kernels
// and of gradient rules need nothing else of the runtime.
//
// Every buffer has its own allocation with guard bytes behind it, starts as 0xff bytes (NaN as a float), and is
// checked after each launch, so that a kernel that leaves a gap or writes outside is found where it happens.
#ifndef ONNXTRAIN_TESTS_SUPPORT_OP_RUNNER_H_
#define ONNXTRAIN_TESTS_SUPPORT_OP_RUNNER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/graph_builder.h"
#include "graph/tensor.h"

namespace onnxtrain {

using NamedTensors = std::map<std::string, Tensor, std::less<>>;

struct OpRunnerOptions {
  int threads = 1;
  uint64_t seed = 0;
  int64_t micro_batch = 0;
  int accumulation = 1;
  // Values to return; empty: the outputs of the graph.
  std::vector<std::string> fetches = {};
  // Share bytes wherever an alias rule of the operator allows it and nobody reads the input afterwards.
  bool share_bytes = false;
};

struct OpRunnerResult {
  NamedTensors fetches;
  uint64_t status_word = 0;  // runtime/kernel.h
};

// `feeds` names every input and state of the graph. Fails as kernel creation and launches fail, and with InvalidData
// for a missing feed or one of another type.
StatusOr<OpRunnerResult> RunGraph(const Graph& graph, const NamedTensors& feeds, const OpRunnerOptions& options = {});

// One input of a graph of one node: fed, or a constant (shapes, axes), or omitted.
struct OpInput {
  std::optional<Tensor> tensor;
  bool constant = false;
};
inline OpInput Fed(Tensor tensor) { return {std::move(tensor), false}; }
inline OpInput Constant(Tensor tensor) { return {std::move(tensor), true}; }
inline OpInput Omitted() { return {}; }

// Adds "x0", "x1", ... and the node to an empty graph; outputs are the graph's outputs "y0", "y1", ...
Status AddOp(Graph& graph, std::string_view op, const std::vector<OpInput>& inputs, Attributes attributes = {},
             size_t outputs = 1);
NamedTensors FeedsOf(const std::vector<OpInput>& inputs);

// Runs one node with 1, 2 and 3 threads, with and without shared bytes, and demands equal bits of all of them.
// Failures, also those of creation, are reported through GoogleTest; the result is then empty.
std::vector<Tensor> RunOp(std::string_view op, const std::vector<OpInput>& inputs, Attributes attributes = {},
                          size_t outputs = 1);
// The same for a whole graph.
NamedTensors RunEveryWay(const Graph& graph, const NamedTensors& feeds);

// Uniform in [low, high) (integers: low..high inclusive, bool: a fair coin); depends on the seed alone.
Tensor RandomTensor(DType dtype, Shape shape, uint64_t seed, double low = -2, double high = 2);

// GoogleTest failures name the first element that differs. NaN equals NaN. Relative to max(1, |expected|).
void ExpectNear(const Tensor& actual, const Tensor& expected, double tolerance);
void ExpectIdentical(const Tensor& actual, const Tensor& expected);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_OP_RUNNER_H_
