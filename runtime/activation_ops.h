// SPDX-License-Identifier: Apache-2.0
// Which function an activation operator is, and with which numbers: the same for every backend.
#ifndef ONNXTRAIN_RUNTIME_ACTIVATION_OPS_H_
#define ONNXTRAIN_RUNTIME_ACTIVATION_OPS_H_

#include <string>
#include <vector>

#include "graph/attributes.h"
#include "runtime/math/unary_function.h"

namespace onnxtrain {

struct Activation {
  UnaryFunction function = UnaryFunction::kRelu;
  double alpha = 0;
  double beta = 0;  // Selu: gamma
};

// "Celu", ..., "ThresholdedRelu". The gradient of OP is the operator onnxtrain.OPGrad with the same attributes.
const std::vector<std::string>& ActivationOps();
// `op` is one of the above.
Activation ActivationOf(const std::string& op, const Attributes& attributes);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_ACTIVATION_OPS_H_
