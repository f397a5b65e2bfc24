// SPDX-License-Identifier: Apache-2.0
// Symbolic dimensions: "batch", "2*batch", "s0 + s1 // 2" as exporters write them.
#ifndef ONNXTRAIN_GRAPH_DIM_BINDING_H_
#define ONNXTRAIN_GRAPH_DIM_BINDING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx_model.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace onnxtrain {

using DimValues = std::map<std::string, int64_t>;

// The value of a symbol or an expression of + - * // % ( ) over symbols and integers; none while a symbol in it is
// unknown or it cannot be read as an expression.
std::optional<int64_t> EvaluateDim(std::string_view symbol, const DimValues& values);

// The value that makes `symbol` equal to `size`: adds it to `values` where one unknown symbol occurs, once, under + - *
// only. False when `size` is impossible.
bool SolveDim(const std::string& symbol, int64_t size, DimValues& values);

// Binds the shapes of all inputs: given types are matched with the declared ones and give values to symbols, declared
// dimensions follow from these. `given` may hold more names. Usage for what stays unbound (with the symbol and the
// input), InvalidData for a given shape or element type that contradicts the declaration or another input.
StatusOr<std::map<std::string, TensorType>> BindInputs(const std::vector<ModelValue>& inputs,
                                                       const std::map<std::string, TensorType>& given,
                                                       const DimValues& dims);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_DIM_BINDING_H_
