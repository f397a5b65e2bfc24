// SPDX-License-Identifier: Apache-2.0
// The plainest way to say what an operator computes: one output element at a time, by its index.
#ifndef ONNXTRAIN_TESTS_SUPPORT_NAIVE_REFERENCE_H_
#define ONNXTRAIN_TESTS_SUPPORT_NAIVE_REFERENCE_H_

#include <functional>
#include <vector>

#include "graph/tensor.h"

namespace onnxtrain {

using Index = std::vector<int64_t>;

Index Unflatten(int64_t position, const Shape& shape);
// An index with more axes than `shape` loses its first ones; an axis of size 1 is always read at 0.
int64_t FlattenBroadcast(const Index& index, const Shape& shape);
Shape BroadcastShape(const Shape& a, const Shape& b);

// A tensor whose element at `index` is value(index), computed in double and cast.
Tensor FromIndices(DType dtype, const Shape& shape, const std::function<double(const Index&)>& value);
double At(const Tensor& tensor, const Index& index);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_NAIVE_REFERENCE_H_
