// SPDX-License-Identifier: Apache-2.0
// Shards parameters and moments over the ranks: ZeRO-1, and ZeRO-2 where gradients are accumulated.
//
// Before:  flat_sum = AllReduce (flat);  a_sum, b_sum = BucketUnpack (flat_sum)
//          a_new, ... = AdamW (a, a_sum, ...);  b_new, ... = AdamW (b, b_sum, ...)
// After:   bucket0 = AllGather (bucket0.parameter);  a, b = BucketUnpack (bucket0)      at the start of the step
//          shard = ReduceScatter (flat)
//          bucket0.parameter_new, ... = AdamW <bucket, weight_decays, lr_multipliers> (bucket0.parameter, shard, ...)
//
// State is the shard; what is gathered is a cache, kept as the state bucket<k>.replica. All-gathers open the graph in
// order of first use, each bucket is unpacked right before its first use, and optimizer nodes stand in that order too.
// Every graph is rewritten: `step` and `first` gather and refresh the replicas, `middle`, `last` and `eval` read them,
// and `gather` refreshes them alone. The norm is taken of shards, so the one small AllReduce of the step moves behind
// `totals`.
//
// Stage 2 differs only with accumulation: each micro-batch is reduced and scattered into bucket<k>.accumulator, a
// shard, in place of one whole accumulator a parameter and a single reduction in `last`.
#ifndef ONNXTRAIN_PASSES_SHARD_OPTIMIZER_H_
#define ONNXTRAIN_PASSES_SHARD_OPTIMIZER_H_

#include <memory>

#include "passes/pass.h"

namespace onnxtrain {

struct ShardOptimizerOptions {
  int stage = 1;  // 1 or 2
};

// Needs the buckets that bucket_gradients made; changes nothing where there are none (one rank).
std::unique_ptr<Pass> ShardOptimizer(const ShardOptimizerOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_SHARD_OPTIMIZER_H_
