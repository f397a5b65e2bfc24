// SPDX-License-Identifier: Apache-2.0
// The losses of append_loss as nodes. Every function returns the mean over the local batch as a scalar of x's type;
// failures stay in the builder. `labels` have the type and shape that the loss asks for: AppendLoss has seen to it.
#ifndef ONNXTRAIN_PASSES_LOSS_FORMULAS_H_
#define ONNXTRAIN_PASSES_LOSS_FORMULAS_H_

#include <cstdint>

#include "graph/graph_builder.h"
#include "passes/append_loss.h"

namespace onnxtrain {

// x: [N,C,d1,...] logits (ce) or log-probabilities (nll); labels: int32 or int64 [N,d1,...].
Value* ClassLoss(GraphBuilder& build, const AppendLossOptions& options, Value* x, Value* labels);
// mse, l1, smooth_l1, bce; labels of x's type and shape.
Value* ElementLoss(GraphBuilder& build, LossKind kind, Value* x, Value* labels);
// sum, mean, l2.
Value* Reduction(GraphBuilder& build, LossKind kind, Value* x);

// How many labels count: a float (or double, for `to` double) scalar. `ignore_index` null: all of them.
Value* CountedLabels(GraphBuilder& build, Value* labels, Value* class_weights, const int64_t* ignore_index, DType to,
                     std::string_view name);
// How many of the counted labels are the largest class of `logits` (class axis 1): a double scalar.
Value* CorrectLabels(GraphBuilder& build, Value* logits, Value* labels, const int64_t* ignore_index);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_LOSS_FORMULAS_H_
