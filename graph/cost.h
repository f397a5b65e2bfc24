// SPDX-License-Identifier: Apache-2.0
// How long a node takes, from its types alone: a roofline of arithmetic and memory, and alpha-beta for collectives.
// Equal on all ranks by construction, since nothing is measured. It decides where buckets are cut and feeds the
// simulated device; absolute times are rough, ratios are what counts.
#ifndef ONNXTRAIN_GRAPH_COST_H_
#define ONNXTRAIN_GRAPH_COST_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "graph/cost_model.h"
#include "graph/graph.h"

namespace onnxtrain {

// What a node does at least: arithmetic, and bytes read and written when nothing is in a cache.
struct NodeWork {
  double flops = 0;
  double bytes = 0;
};
NodeWork WorkOf(const Node& node);

// max(flops / rate, bytes / memory) + kernel_us, where the rate is half_gflops for products and convolutions of 16-bit
// tensors, else gflops; a collective by CollectiveMicroseconds; 0 for a node whose outputs
// are views of its inputs.
double NodeMicroseconds(const Node& node, const CostModel& model);

// Time of a ring over d = world_size ranks: alpha + beta * bytes * (d-1)/d for reduce-scatter and all-gather of `bytes`
// in whole, where alpha is the link's latency and beta the time of a byte. 0 on one rank.
double CollectiveMicroseconds(double bytes, const CostModel& model);

// When each gradient exists: by parameter, the end of the node that writes the role "gradient/<parameter>", where nodes
// run one after the other in the order of the graph and collectives take no compute time. From the start of the graph.
std::map<std::string, double, std::less<>> GradientReleaseTimes(const Graph& graph, const CostModel& model);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_COST_H_
