// SPDX-License-Identifier: Apache-2.0
#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"

namespace onnxtrain {

void AddActivationOps(OpRegistry&) {}

}  // namespace onnxtrain
