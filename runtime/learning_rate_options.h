// SPDX-License-Identifier: Apache-2.0
// The schedule of an onnxtrain.LearningRate node, the same for every backend.
#ifndef ONNXTRAIN_RUNTIME_LEARNING_RATE_OPTIONS_H_
#define ONNXTRAIN_RUNTIME_LEARNING_RATE_OPTIONS_H_

#include "runtime/kernel.h"
#include "runtime/math/learning_rate.h"

namespace onnxtrain {

// InvalidModel for a schedule that there is not.
StatusOr<math::LearningRateOptions> LearningRateOptionsOf(const KernelContext& context);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_LEARNING_RATE_OPTIONS_H_
