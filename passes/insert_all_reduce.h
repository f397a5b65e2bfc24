// SPDX-License-Identifier: Apache-2.0
// Plain data parallelism: every gradient, and the sums of loss and weight, are summed over the ranks.
//
// Before:  g = ...;                            w_new = AdamW (w, g, ...)
// After:   g = ...;  g_sum = AllReduce (g);    w_new = AdamW (w, g_sum, ...)
//
// An AllReduce stands right behind the producer of its gradient: it may start as soon as that has run. The role
// gradient/<parameter> stays with the local gradient.
#ifndef ONNXTRAIN_PASSES_INSERT_ALL_REDUCE_H_
#define ONNXTRAIN_PASSES_INSERT_ALL_REDUCE_H_

#include <memory>

#include "passes/pass.h"

namespace onnxtrain {

struct InsertAllReduceOptions {
  int world_size = 1;  // becomes the program's; 1 changes nothing
};

// Works on `step` or `last`; needs what append_optimizer made.
std::unique_ptr<Pass> InsertAllReduce(const InsertAllReduceOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_INSERT_ALL_REDUCE_H_
