// SPDX-License-Identifier: Apache-2.0
// Adds the graph `eval`: the model in its inference form, with sums of loss and weight and counts of right labels.
//
// Before:  step:  logits = ...Dropout...BatchNormalization...
// After:   step, and
//          eval:  logits = ...;  loss_sum, loss_weight, status, correct, counted beside the model's own outputs
//
// The first pass of the pipeline: `step` is still the model as it was read. Nothing is updated in `eval`.
#ifndef ONNXTRAIN_PASSES_APPEND_EVALUATION_H_
#define ONNXTRAIN_PASSES_APPEND_EVALUATION_H_

#include <memory>

#include "passes/append_loss.h"

namespace onnxtrain {

// Of `loss`, graph and evaluation are not looked at. Fails as append_loss does.
std::unique_ptr<Pass> AppendEvaluation(const AppendLossOptions& loss);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_APPEND_EVALUATION_H_
