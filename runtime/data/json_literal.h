// SPDX-License-Identifier: Apache-2.0
// Tensors written on the command line: 3, [1,2.5], [[1,2],[3,4]], [true,false].
#ifndef ONNXTRAIN_RUNTIME_DATA_JSON_LITERAL_H_
#define ONNXTRAIN_RUNTIME_DATA_JSON_LITERAL_H_

#include <string_view>

#include "graph/status.h"
#include "graph/tensor.h"

namespace onnxtrain {

// A number, true, false, or nested lists of them, all of one depth and equal lengths. The strings "NaN", "Infinity" and
// "-Infinity" are numbers. With `dtype`: the numbers as that type; a fraction or a number out of range for an integer
// type is kInvalidData, floats are rounded. Without: int64 when all are whole, bool when all are true or false, else
// double. `name` is for messages, which count bytes of the text.
StatusOr<Tensor> ParseJsonLiteral(std::string_view text, std::string_view name, DType dtype = DType::kUndefined);

// It starts like one: a bracket, a digit, a sign.
bool LooksLikeJsonLiteral(std::string_view text);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_JSON_LITERAL_H_
