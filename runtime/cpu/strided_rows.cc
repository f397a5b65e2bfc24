// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/strided_rows.h"

namespace onnxtrain {

Strides DenseStrides(const Shape& shape) {
  Strides strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Strides BroadcastStrides(const Shape& from, const Shape& to) {
  CHECK(from.size() <= to.size());
  const size_t added = to.size() - from.size();
  const Strides dense = DenseStrides(from);
  Strides strides(to.size(), 0);
  for (size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] == to[axis + added]) strides[axis + added] = from[axis] == 1 ? 0 : dense[axis];
  }
  return strides;
}

}  // namespace onnxtrain
