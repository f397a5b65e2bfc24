// SPDX-License-Identifier: Apache-2.0
// Computes ahead of time what does not depend on inputs or states.
//
// Before:  s = Shape(x);  d = Gather(s, 1);  y = Mul(x, d)        x: float[8,4]
// After:   y = Mul(x, d)                                          d: constant 4
//
// A node folds when graph/evaluate can run it and all its inputs are constants (or it asks for a shape alone), unless
// it draws numbers, communicates or has a side effect, or one of its outputs is a graph output or an update. Results
// above `max_bytes` fold only where they are no larger than the inputs: a broadcast constant is cheaper to compute than
// to keep. A node that cannot be evaluated (an index out of range) is left to fail at run time. Roles move to the
// constant.
#ifndef ONNXTRAIN_PASSES_FOLD_CONSTANTS_H_
#define ONNXTRAIN_PASSES_FOLD_CONSTANTS_H_

#include <cstdint>
#include <memory>

#include "passes/pass.h"

namespace onnxtrain {

struct FoldConstantsOptions {
  int64_t max_bytes = int64_t{1} << 20;
};

std::unique_ptr<Pass> FoldConstants(const FoldConstantsOptions& options = {});

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_FOLD_CONSTANTS_H_
