// SPDX-License-Identifier: Apache-2.0
// One operator as an older opset wrote it, lifted into a graph by its own rule.
#ifndef ONNXTRAIN_TESTS_SUPPORT_LIFTED_OP_H_
#define ONNXTRAIN_TESTS_SUPPORT_LIFTED_OP_H_

#include <string_view>
#include <vector>

#include "tests/support/op_runner.h"

namespace onnxtrain {

// Like AddOp: inputs "x0", "x1", ...; the values that stand for the operator's outputs become the graph's outputs "y0",
// "y1", ...
Status AddLiftedOp(Graph& graph, std::string_view op, int opset, const std::vector<OpInput>& inputs,
                   Attributes attributes = {}, size_t outputs = 1);

// Lifts and runs it. Failures are reported through GoogleTest; the result is then empty.
std::vector<Tensor> RunLiftedOp(std::string_view op, int opset, const std::vector<OpInput>& inputs,
                                Attributes attributes = {}, size_t outputs = 1);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_LIFTED_OP_H_
