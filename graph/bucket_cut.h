// SPDX-License-Identifier: Apache-2.0
// Where to cut the sequence of gradients into buckets so that the last reduction ends as early as it can.
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
  bool apart = false;  // stands alone: the embedding, released last and large
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
