// SPDX-License-Identifier: Apache-2.0
#include "graph/evaluate/strided.h"

#include <algorithm>

namespace onnxtrain::evaluation {

Strides StridesOf(const Shape& shape) {
  Strides strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

std::optional<Shape> Broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t added = longer.size() - shorter.size();
  for (size_t axis = 0; axis < shorter.size(); ++axis) {
    int64_t& dim = result[axis + added];
    if (dim == 1) {
      dim = shorter[axis];
    } else if (shorter[axis] != 1 && shorter[axis] != dim) {
      return std::nullopt;
    }
  }
  return result;
}

Strides BroadcastStrides(const Shape& from, const Shape& to) {
  CHECK(from.size() <= to.size());
  const Strides own = StridesOf(from);
  const size_t added = to.size() - from.size();
  Strides strides(to.size(), 0);
  for (size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] != 1) strides[axis + added] = own[axis];
  }
  return strides;
}

void CopyStrided(const Tensor& from, int64_t start, const Strides& strides, Tensor& to) {
  Walk<1> walk(to.shape(), {strides});
  walk.set_start(0, start);
  const int64_t count = to.elements();
  for (int64_t i = 0; i < count; ++i, walk.Next()) CopyElement(from, walk.offset(0), to, i);
}

}  // namespace onnxtrain::evaluation
