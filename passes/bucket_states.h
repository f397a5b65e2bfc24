// SPDX-License-Identifier: Apache-2.0
// The states of sharded buckets and the nodes that read them, for shard_optimizer.
#ifndef ONNXTRAIN_PASSES_BUCKET_STATES_H_
#define ONNXTRAIN_PASSES_BUCKET_STATES_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/program.h"

namespace onnxtrain {

// What takes the place of the states of a bucket's parameters.
struct BucketStates {
  int bucket = 0;
  StateEntry parameter;              // shard
  StateEntry replica;                // whole
  std::vector<StateEntry> moments;   // shards, in the order of the optimizer's inputs
  std::vector<std::string> members;  // state names of the whole parameters, in bucket order
};

// What a parameter is gathered in: the 16-bit type that every graph casts it to before reading it (mixed_precision),
// else its own type. Optimizers do not count: they read shards.
DType ReplicaType(const Program& program, const std::string& state);

// The state of a bucket: one rank's shard of it, or the whole. Its name is unique in the program.
StateEntry BucketEntry(const Program& program, int bucket, std::string_view role, StateClass state_class, bool sharded);

// Attributes "bucket", "offsets" and "shapes" of the node that takes a bucket apart.
Attributes UnpackAttributes(const Layout& layout, int bucket);

// Lets the graph read its parameters from buckets, those the graph uses: `gathers` true gathers the shards at the start
// in the order of first use and refreshes the replicas (of all buckets, used or not); false reads the replicas.
// Afterwards no node reads the whole parameters' states. Optimizer nodes must be gone.
Status ReadFromBuckets(Graph& graph, const Layout& layout, const std::vector<BucketStates>& buckets, bool gathers);

// Bucket numbers by the first use of one of their parameters in the graph; unused ones last. `except` are nodes that do
// not count: optimizers.
std::vector<size_t> BucketsByFirstUse(const Graph& graph, const std::vector<BucketStates>& buckets);

// Shards -> replicas, and nothing else.
Graph MakeGatherGraph(const OpRegistry& registry, const Layout& layout, const std::vector<BucketStates>& buckets,
                      const std::vector<size_t>& order);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_BUCKET_STATES_H_
