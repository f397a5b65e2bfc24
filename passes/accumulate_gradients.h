// SPDX-License-Identifier: Apache-2.0
// Splits a step into micro-batches: gradients and sums are added up on the rank and used once.
//
// Before:  step:   g = ...;  w_new = AdamW (w, g, ...)
// After:   first:  w.accumulated := g
//          middle: w.accumulated := Add (w.accumulated, g)
//          last:   total = Add (w.accumulated, g);  w_new = AdamW (w, total, ...)
//
// The same for the sums of loss, weight and fault flag; `first` and `middle` have the output `status`. Running
// statistics go from micro-batch to micro-batch in a pending state, and become the buffer's in `last`, only if the step
// is applied:
//   first:  pending := new (from buffer)
//   middle: pending := new (from pending)
//   last:   buffer := Where (applied, new (from pending), buffer)
//
// Accumulators and pending states are written by `first` before anything reads them: they need no zero and are never
// saved.
#ifndef ONNXTRAIN_PASSES_ACCUMULATE_GRADIENTS_H_
#define ONNXTRAIN_PASSES_ACCUMULATE_GRADIENTS_H_

#include <memory>

#include "passes/pass.h"

namespace onnxtrain {

struct AccumulateGradientsOptions {
  int micro_batches = 1;  // of a step; 1 changes nothing
};

// Replaces `step`. Needs what append_optimizer made; comes before insert_all_reduce.
std::unique_ptr<Pass> AccumulateGradients(const AccumulateGradientsOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_ACCUMULATE_GRADIENTS_H_
