// SPDX-License-Identifier: Apache-2.0
// Decides which gradient lies in which bucket: pure arithmetic on names, types and release times, no graph.
#ifndef ONNXTRAIN_PASSES_BUCKET_LAYOUT_H_
#define ONNXTRAIN_PASSES_BUCKET_LAYOUT_H_

#include <string>
#include <vector>

#include "passes/bucket_gradients.h"

namespace onnxtrain {

struct ReleasedGradient {
  std::string parameter;
  TensorType type;
  int group = 0;           // optimizer group
  bool embedding = false;  // read by a Gather
  double release_us = 0;
  double first_use_us = 0;  // by forward
  DType replica = DType::kUndefined;  // what sharded state is gathered in
};

// `gradients` in order of release, at least one; options.release_us is not read. Buckets are numbered by the release of
// their last gradient.
Layout MakeBucketLayout(const std::vector<ReleasedGradient>& gradients, const BucketGradientsOptions& options,
                        int world_size);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_BUCKET_LAYOUT_H_
