// SPDX-License-Identifier: Apache-2.0
// Random graphs for planner, verifier, executor and simulator: typed, valid, with everything that makes memory and
// order interesting: states and updates of every kind, views, buckets with gaps, collectives, dead values, empty
// tensors.
#ifndef ONNXTRAIN_TESTS_SUPPORT_RANDOM_GRAPH_H_
#define ONNXTRAIN_TESTS_SUPPORT_RANDOM_GRAPH_H_

#include <cstdint>
#include <map>
#include <string>

#include "graph/graph.h"
#include "graph/op_registry.h"

namespace onnxtrain {

// Add, Mul, Relu, MatMul, Reshape and the collectives with the names, types and aliases of the real operators, without
// ONNX's inference: what the random graphs are made of; and WeightGradient for the synthetic step.
const OpRegistry& SyntheticRegistry();

struct RandomGraphOptions {
  int nodes = 30;      // about so many
  int world_size = 2;  // of ReduceScatter and AllGather
  bool collectives = true;
};

// The same graph for the same seed and options. All values but the shapes of Reshape are float.
Graph MakeRandomGraph(uint64_t seed, const OpRegistry& registry, const RandomGraphOptions& options = {});

// Seeded bytes in [-1, 1) for every input and state of the graph, by name.
std::map<std::string, Tensor> MakeRandomTensors(const Graph& graph, uint64_t seed);

// A step as training makes it: `layers` matrix products forward and backward over [width, width] weights, one bucket
// per `layers_per_bucket` layers, ReduceScatter, optimizer on shards, AllGather at the start. Every node has the shapes
// and the cost of the real thing, not its meaning: transposes are left out. Values are named after what they are.
struct SyntheticStepOptions {
  int layers = 8;
  int layers_per_bucket = 2;
  int64_t width = 64;
  int64_t batch = 64;
  int world_size = 2;
};
Graph MakeSyntheticStep(const SyntheticStepOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_RANDOM_GRAPH_H_
