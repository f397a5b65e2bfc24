// SPDX-License-Identifier: Apache-2.0
// The passes of a training run, in order, from its options.
#ifndef ONNXTRAIN_PASSES_STANDARD_PIPELINE_H_
#define ONNXTRAIN_PASSES_STANDARD_PIPELINE_H_

#include "passes/append_loss.h"
#include "passes/append_optimizer.h"
#include "passes/bucket_gradients.h"
#include "passes/build_backward.h"
#include "passes/mixed_precision.h"
#include "passes/set_mode.h"

namespace onnxtrain {

struct PipelineOptions {
  SetModeOptions mode;
  AppendLossOptions loss;
  AppendOptimizerOptions optimizer;
  BucketGradientsOptions buckets;
  int ranks = 1;
  int zero = 0;                      // ZeRO stage 0, 1, 2
  MixedPrecisionOptions precision{DType::kFloat};
  int accumulation = 1;              // micro-batches a step
  bool evaluation = true;            // with an `eval` graph
  BackwardReport* report = nullptr;  // borrowed; may be null
};

// Expects a program whose only graph is `step`, the model as it was read. What it leaves: `step` or `first`, `middle`,
// `last`; `eval`; with sharding `gather`; and the zero_ graphs where a rank or micro-batch may be without samples.
// Usage for a stage that is not 0, 1 or 2.
StatusOr<PassPipeline> StandardPipeline(const PipelineOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_STANDARD_PIPELINE_H_
