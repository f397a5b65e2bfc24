// SPDX-License-Identifier: Apache-2.0
// Where to cut the sequence of gradients into buckets so that a step waits for communication as little as it can.
//
// Gradients are released at times r_1 <= ... <= r_n; a bucket of consecutive gradients starts when its last one is
// released and the channel is free, and takes a + b * bytes. Consecutive buckets are optimal on one channel, and
//   f[0] = 0,  f[i] = min over j < i of  max(f[j], r_i) + a + b * (bytes of j+1 .. i)
// finds the best end f[n]. No cut at all, consecutive or not, can end before
//   max over i of  r_i + a + b * (bytes of i .. n).
#ifndef ONNXTRAIN_GRAPH_BUCKET_CUT_H_
#define ONNXTRAIN_GRAPH_BUCKET_CUT_H_

#include <cstdint>
#include <vector>

#include "graph/cost.h"

namespace onnxtrain {

// One gradient, in the order of release.
struct GradientRelease {
  double release_us = 0;  // a value below its predecessor's is raised to it
  int64_t bytes = 0;
  int kind = 0;        // only neighbours of one kind (element type) may share a bucket
  bool apart = false;  // shares no bucket with those that are not: embeddings, released last
  // When forward first reads the parameter, on a clock that starts with the step; only a sharded cut looks at it.
  double first_use_us = 0;
};

struct LinkCost {
  double latency_us = 0;
  double us_per_byte = 0;
};
// Of a reduce-scatter over model.world_size ranks.
LinkCost LinkCostOf(const CostModel& model);

// Gradients [begin, end) of the sequence.
struct BucketRange {
  int begin = 0;
  int end = 0;
  bool operator==(const BucketRange&) const = default;
};

struct BucketCut {
  std::vector<BucketRange> buckets;  // cover the sequence in order
  double finish_us = 0;              // of this cut
  double optimum_us = 0;             // of the best cut that keeps kinds and lone gradients apart
  double bound_us = 0;               // no cut ends earlier
};

struct BucketCutOptions {
  // The fewest buckets whose exposed time (end minus the last release) is at most 1 + tolerance times the optimum's.
  double tolerance = 0.01;
  // Above 0: the best cut into at most so many buckets instead (or the fewest that kinds and lone gradients allow).
  int count = 0;
};

// With sharded state a step also begins with communication: the buckets of parameters are gathered one after the other in
// the order in which forward reads them, and a node waits for its own. The step is then exposed to
//   head + tail,  head = max over buckets k, in order of use, of  sum of (a + b * bytes) up to k  -  first use of k
// and the tail as above. Both are exact for a cut; over the cuts of a sequence the sum has no recurrence, because the order
// of use is not that of release. So: the best cut for every number of buckets, each improved by joining, splitting and
// moving borders while that helps; the same on every rank. Tests compare with all cuts of short sequences.
// As CutBuckets otherwise; finish_us, optimum_us and bound_us are of the tail.
BucketCut CutShardedBuckets(const std::vector<GradientRelease>& gradients, const LinkCost& reduce, const LinkCost& gather,
                            const BucketCutOptions& options = {});
// head + tail of a cut.
double ShardedExposure(const std::vector<GradientRelease>& gradients, const std::vector<BucketRange>& buckets,
                       const LinkCost& reduce, const LinkCost& gather);

// Exact, O(gradients * buckets). Negative times, bytes and costs are CHECKed.
BucketCut CutBuckets(const std::vector<GradientRelease>& gradients, const LinkCost& link,
                     const BucketCutOptions& options = {});

// A bucket ends before the gradient that would take it above `cap_bytes`; from one byte (each gradient alone) to
// infinity (one bucket a kind). `apart` is not looked at: the user decides.
std::vector<BucketRange> CutBySize(const std::vector<GradientRelease>& gradients, double cap_bytes);

// When the last bucket of a cut is reduced.
double FinishOf(const std::vector<GradientRelease>& gradients, const std::vector<BucketRange>& buckets,
                const LinkCost& link);

// The bound above.
double FinishBound(const std::vector<GradientRelease>& gradients, const LinkCost& link);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_BUCKET_CUT_H_
