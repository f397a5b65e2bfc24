// SPDX-License-Identifier: Apache-2.0
#include "passes/bucket_layout.h"

#include <algorithm>
#include <map>

namespace onnxtrain {
namespace {

using Members = std::vector<int>;  // indices of gradients, by release

// Closes a bucket as soon as it has `limit` bytes.
std::vector<Members> CutBySize(const std::vector<ReleasedGradient>& gradients, const Members& run, double limit) {
  std::vector<Members> buckets;
  double bytes = 0;
  for (const int index : run) {
    if (buckets.empty() || bytes >= limit) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(index);
    bytes += static_cast<double>(gradients[static_cast<size_t>(index)].type.bytes());
  }
  return buckets;
}

std::vector<Members> Cut(const std::vector<ReleasedGradient>& gradients, const Members& run,
                         const BucketGradientsOptions& options) {
  return CutBySize(gradients, run, *options.bucket_bytes);
}

// One element type: the embeddings at the end of the run apart from the rest.
void CutRun(const std::vector<ReleasedGradient>& gradients, const Members& run, const BucketGradientsOptions& options,
            std::vector<Members>& buckets) {
  size_t tail = run.size();
  while (tail > 0 && gradients[static_cast<size_t>(run[tail - 1])].embedding) --tail;
  const auto middle = run.begin() + static_cast<std::ptrdiff_t>(tail);
  for (const Members& part : {Members(run.begin(), middle), Members(middle, run.end())}) {
    for (Members& bucket : Cut(gradients, part, options)) buckets.push_back(std::move(bucket));
  }
}

}  // namespace

Layout MakeBucketLayout(const std::vector<ReleasedGradient>& gradients, const BucketGradientsOptions& options,
                        int world_size) {
  std::map<DType, Members> runs;
  std::vector<LayoutParameter> parameters;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const ReleasedGradient& gradient = gradients[i];
    runs[gradient.type.dtype].push_back(static_cast<int>(i));
    parameters.push_back({.name = gradient.parameter, .type = gradient.type, .group = gradient.group});
  }
  std::vector<Members> buckets;
  for (const auto& [dtype, run] : runs) CutRun(gradients, run, options, buckets);
  std::sort(buckets.begin(), buckets.end(), [](const Members& a, const Members& b) { return a.back() < b.back(); });
  return Layout::Make(std::move(parameters), buckets, world_size);
}

}  // namespace onnxtrain
