// SPDX-License-Identifier: Apache-2.0
// Gathers gradients into flat buckets, one collective each, and makes the program's Layout.
//
// Before:  dB_sum = AllReduce (dB);  dA_sum = AllReduce (dA)
// After:   flat = BucketPack <bucket, elements, offsets> (dB, dA);  flat_sum = AllReduce <bucket> (flat)
//          dB_sum, dA_sum = BucketUnpack <bucket, offsets, shapes> (flat_sum)
//
// With reduce = kBfloat16:
//          flat = BucketPack (Cast (dB), Cast (dA));  flat_sum = Cast (AllReduce (flat))
//
// A bucket holds gradients of one element type that are released one after the other; it is packed and reduced right
// behind the last of them, and unpacked where the norm is taken. In an exact cut, parameters that a Gather reads
// (embeddings) and that are released last stand apart from the rest, since nothing is left to hide their reduction. Hyper-parameters
// never open another bucket: they become the groups of the Layout.
#ifndef ONNXTRAIN_PASSES_BUCKET_GRADIENTS_H_
#define ONNXTRAIN_PASSES_BUCKET_GRADIENTS_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "graph/cost.h"
#include "passes/pass.h"

namespace onnxtrain {

struct BucketGradientsOptions {
  // No bucket grows above this many bytes; 1 gives one bucket a parameter, infinity one an element type. Unset: cut
  // exactly (graph/bucket_cut.h).
  std::optional<double> bucket_bytes;
  // For the exact cut, plain data that is the same on every rank: the cost of nodes and of the link ...
  CostModel cost;
  // The state will be sharded (shard_optimizer): buckets are gathered at the start of a step, which the cut then counts.
  bool sharded = false;
  // What gradients are reduced in. kBfloat16 halves the traffic of float gradients: a rank's own is rounded before the
  // reduction, the sum behind it is float again. Other types are not touched.
  DType reduce = DType::kFloat;
  double tolerance = 0.01;  // fewest buckets whose exposed time is at most 1 + tolerance times the optimum's
  // ... and when gradients exist, by parameter, in microseconds. Empty: from the cost of the graph's nodes.
  std::map<std::string, double, std::less<>> release_us;
  // Of an earlier run for another batch shape: taken as it is. Its parameters must be those with a gradient.
  std::optional<Layout> layout;
};

// Works on `step` or `last`; needs what insert_all_reduce made, and changes nothing where there is no AllReduce (one
// rank).
std::unique_ptr<Pass> BucketGradients(const BucketGradientsOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_BUCKET_GRADIENTS_H_
