// SPDX-License-Identifier: Apache-2.0
#include "tests/support/naive_reference.h"

#include <algorithm>

namespace onnxtrain {

Index Unflatten(int64_t position, const Shape& shape) {
  Index index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = position % shape[axis];
    position /= shape[axis];
  }
  return index;
}

int64_t FlattenBroadcast(const Index& index, const Shape& shape) {
  int64_t position = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t i = index[axis + index.size() - shape.size()];
    position = position * shape[axis] + (shape[axis] == 1 ? 0 : i);
  }
  return position;
}

Shape BroadcastShape(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (const Shape* shape : {&a, &b}) {
    for (size_t i = 0; i < shape->size(); ++i) {
      int64_t& size = result[i + result.size() - shape->size()];
      if ((*shape)[i] != 1) size = (*shape)[i];
    }
  }
  return result;
}

Tensor FromIndices(DType dtype, const Shape& shape, const std::function<double(const Index&)>& value) {
  Tensor result(TensorType{DType::kDouble, shape});
  for (int64_t i = 0; i < result.elements(); ++i) {
    result.values<double>()[static_cast<size_t>(i)] = value(Unflatten(i, shape));
  }
  return result.CastTo(dtype);
}

double At(const Tensor& tensor, const Index& index) { return tensor.DoubleAt(FlattenBroadcast(index, tensor.shape())); }

}  // namespace onnxtrain
