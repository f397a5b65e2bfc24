// SPDX-License-Identifier: Apache-2.0
// Takes out what no output and no update needs.
//
// Before:  y = Relu(x);  z = Neg(y)      output: y
// After:   y = Relu(x)                   output: y
//
// Collectives and operators with side effects stay, inputs stay; constants and states that nothing reads go, the state
// table keeps its entries. A role keeps nothing alive.
#ifndef ONNXTRAIN_PASSES_ELIMINATE_DEAD_NODES_H_
#define ONNXTRAIN_PASSES_ELIMINATE_DEAD_NODES_H_

#include <memory>

#include "passes/pass.h"

namespace onnxtrain {

std::unique_ptr<Pass> EliminateDeadNodes();

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_ELIMINATE_DEAD_NODES_H_
