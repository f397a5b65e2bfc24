// SPDX-License-Identifier: Apache-2.0
#include "passes/bucket_layout.h"

#include <algorithm>
#include <map>

#include "graph/bucket_cut.h"

namespace onnxtrain {
namespace {

using Members = std::vector<int>;  // indices of gradients, by release

// One element type. Embeddings stand apart where they end the run.
std::vector<Members> CutRun(const std::vector<ReleasedGradient>& gradients, const Members& run,
                            const BucketGradientsOptions& options, int world_size) {
  std::vector<GradientRelease> releases;
  for (const int index : run) {
    const ReleasedGradient& gradient = gradients[static_cast<size_t>(index)];
    releases.push_back({gradient.release_us, static_cast<int64_t>(gradient.type.bytes())});
    releases.back().first_use_us = gradient.first_use_us;
  }
  for (size_t i = run.size(); i-- > 0 && gradients[static_cast<size_t>(run[i])].embedding;) releases[i].apart = true;
  CostModel cost = options.cost;
  cost.world_size = world_size;
  const LinkCost link = LinkCostOf(cost);  // a gather costs what a reduce-scatter does
  std::vector<BucketRange> ranges;
  if (options.bucket_bytes.has_value()) {
    ranges = CutBySize(releases, *options.bucket_bytes);
  } else if (options.sharded) {
    ranges = CutShardedBuckets(releases, link, link, {.tolerance = options.tolerance}).buckets;
  } else {
    ranges = CutBuckets(releases, link, {.tolerance = options.tolerance}).buckets;
  }
  std::vector<Members> buckets;
  for (const BucketRange& range : ranges) buckets.emplace_back(run.begin() + range.begin, run.begin() + range.end);
  return buckets;
}

}  // namespace

Layout MakeBucketLayout(const std::vector<ReleasedGradient>& gradients, const BucketGradientsOptions& options,
                        int world_size) {
  std::map<std::pair<DType, DType>, Members> runs;  // a bucket is reduced in one type, and gathered in one
  std::vector<LayoutParameter> parameters;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const ReleasedGradient& gradient = gradients[i];
    const DType replica = options.sharded ? gradient.replica : gradient.type.dtype;
    runs[{gradient.type.dtype, replica}].push_back(static_cast<int>(i));
    parameters.push_back({.name = gradient.parameter, .type = gradient.type, .group = gradient.group});
  }
  std::vector<Members> buckets;
  for (const auto& [types, run] : runs) {
    for (Members& bucket : CutRun(gradients, run, options, world_size)) buckets.push_back(std::move(bucket));
  }
  std::sort(buckets.begin(), buckets.end(), [](const Members& a, const Members& b) { return a.back() < b.back(); });
  return Layout::Make(std::move(parameters), buckets, world_size);
}

}  // namespace onnxtrain
