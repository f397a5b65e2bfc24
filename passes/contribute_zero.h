// SPDX-License-Identifier: Apache-2.0
// Adds what a rank without samples runs: the same collectives, with gradients and sums of zero.
//
// Before:  step:       g = ...forward and backward...;  g_sum = AllReduce (g);  w_new = AdamW (w, g_sum, ...)
// After:   step, and
//          zero_step:  g = ConstantOfShape (...);       g_sum = AllReduce (g);  w_new = AdamW (w, g_sum, ...)
//
// One zero_ graph for each of `step`, `first`, `middle`, `last`. They read no data; running statistics stay as they are
// (or as the micro-batch before left them).
#ifndef ONNXTRAIN_PASSES_CONTRIBUTE_ZERO_H_
#define ONNXTRAIN_PASSES_CONTRIBUTE_ZERO_H_

#include <memory>

#include "passes/pass.h"

namespace onnxtrain {

// The last of the passes that change the step. Changes nothing for one rank with one micro-batch, which always has
// samples.
std::unique_ptr<Pass> ContributeZero();

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_CONTRIBUTE_ZERO_H_
