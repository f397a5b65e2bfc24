// SPDX-License-Identifier: Apache-2.0
// A small host interpreter of canonical operators on known tensors: how shape arithmetic, masks, positions and function
// bodies become constants before training starts. Naive and exact, not fast: sums of floats are accumulated in double.
//
// Semantics are ONNX's at kCanonicalOpset with numpy's where ONNX leaves a choice. Integers wrap on overflow, division
// by an integer zero is an error, a float out of an integer's range saturates in Cast (NaN gives 0). 16-bit floats are
// computed in float and rounded once.
#ifndef ONNXTRAIN_GRAPH_EVALUATE_H_
#define ONNXTRAIN_GRAPH_EVALUATE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/attributes.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace onnxtrain {

// Whether the operator is deterministic, free of side effects and known to Evaluate. Types may still be refused.
bool CanEvaluate(std::string_view op);

// The first `outputs` outputs. An omitted optional input is null. InvalidModel for what the operator forbids (an index
// out of range, shapes that do not broadcast, a missing input) or Evaluate does not serve, ResourceExhausted for a
// result above 1 GiB. Never ends the program, whatever the tensors hold.
StatusOr<std::vector<Tensor>> Evaluate(std::string_view op, const Attributes& attributes,
                                       std::span<const Tensor* const> inputs, size_t outputs);

// The value of operators that look at the type of their input alone: Shape and Size. Nullopt for all others, and where
// Evaluate would fail.
std::optional<Tensor> EvaluateFromType(std::string_view op, const Attributes& attributes, const TensorType& input);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_EVALUATE_H_
