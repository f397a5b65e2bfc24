// SPDX-License-Identifier: Apache-2.0
#ifndef ONNXTRAIN_RUNTIME_SCATTER_REDUCTION_H_
#define ONNXTRAIN_RUNTIME_SCATTER_REDUCTION_H_

#include "graph/graph.h"
#include "graph/status.h"
#include "runtime/math/scatter.h"

namespace onnxtrain {

// Of ScatterElements and ScatterND. InvalidModel for a name that ONNX does not define.
StatusOr<ScatterReduction> ScatterReductionOf(const Node& node);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_SCATTER_REDUCTION_H_
