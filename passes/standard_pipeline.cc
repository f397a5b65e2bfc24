// SPDX-License-Identifier: Apache-2.0
#include "passes/standard_pipeline.h"

#include "passes/accumulate_gradients.h"
#include "passes/append_evaluation.h"
#include "passes/contribute_zero.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/fold_constants.h"
#include "passes/fuse_gelu.h"
#include "passes/fuse_matmul.h"
#include "passes/insert_all_reduce.h"
#include "passes/merge_equal_nodes.h"
#include "passes/shard_optimizer.h"

namespace onnxtrain {

StatusOr<PassPipeline> StandardPipeline(const PipelineOptions& options) {
  if (options.zero < 0 || options.zero > 2) {
    return UsageError("--zero must be 0, 1 or 2, found " + std::to_string(options.zero));
  }
  BuildBackwardOptions backward;
  backward.report = options.report;
  PassPipeline pipeline;
  pipeline.Add(FuseGelu());
  pipeline.Add(FuseMatMul());
  if (options.evaluation) pipeline.Add(AppendEvaluation(options.loss));
  pipeline.Add(SetMode(options.mode));
  pipeline.Add(AppendLoss(options.loss));
  if (options.precision.compute != DType::kFloat) pipeline.Add(MixedPrecision(options.precision));
  pipeline.Add(BuildBackward(backward));
  pipeline.Add(FoldConstants({}));
  pipeline.Add(MergeEqualNodes());
  pipeline.Add(AppendOptimizer(options.optimizer));
  pipeline.Add(EliminateDeadNodes());  // not before: until then nothing keeps loss and gradients alive
  pipeline.Add(AccumulateGradients({.micro_batches = options.accumulation}));
  pipeline.Add(InsertAllReduce({.world_size = options.ranks}));
  BucketGradientsOptions buckets = options.buckets;
  buckets.sharded = options.zero > 0;
  pipeline.Add(BucketGradients(buckets));
  if (options.zero > 0) pipeline.Add(ShardOptimizer({.stage = options.zero}));
  pipeline.Add(ContributeZero());
  return pipeline;
}

}  // namespace onnxtrain
