// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/ops/indexing.h"

#include <algorithm>
#include <array>

#include "cuda_ops/ops/loops.h"

namespace onnxtrain {
namespace {

size_t AxisOf(const Node& node, const Shape& data) {
  const int64_t axis = node.attributes().Int("axis", 0);
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(data.size()) : axis);
}

}  // namespace

Indexed<AxisPlaces> IndexedAlongAxis(const Node& node, const Shape& data, const TensorType& indices) {
  const size_t axis = AxisOf(node, data);
  const std::span<const int64_t> sizes(data);
  Indexed<AxisPlaces> indexed;
  indexed.places.index_dtype = indices.dtype;
  indexed.places.size = sizes[axis];
  indexed.outer = ElementsOf(sizes.first(axis));
  indexed.size = sizes[axis];
  indexed.inner = ElementsOf(sizes.subspan(axis + 1));
  indexed.count = indices.elements();
  return indexed;
}

StatusOr<Indexed<ElementPlaces>> IndexedElements(const KernelContext& context, const Shape& data,
                                                 const TensorType& indices) {
  const size_t axis = AxisOf(context.node, data);
  std::vector<int64_t> strides = DenseLoopStrides(data);
  Indexed<ElementPlaces> indexed;
  indexed.places.axis.index_dtype = indices.dtype;
  indexed.places.axis.size = data[axis];
  indexed.places.axis_stride = strides[axis];
  strides[axis] = 0;
  ASSIGN_OR_RETURN(indexed.places.other_axes, LoopFor<1>(context, indices.shape, {strides}));
  indexed.size = ElementsOf(data);
  indexed.count = indices.elements();
  return indexed;
}

StatusOr<Indexed<TuplePlaces>> IndexedTuples(const KernelContext& context, const Shape& data, const Shape& indices,
                                             int64_t batch_axes) {
  const auto batch_rank = static_cast<size_t>(batch_axes);
  const auto length = static_cast<size_t>(indices.back());
  if (length > kMaxLoopAxes) {
    return InvalidModelError(context.node.Describe() + " has tuples of " + std::to_string(length) +
                             " indices; the CUDA kernels serve up to " + std::to_string(kMaxLoopAxes));
  }
  const std::span<const int64_t> sizes(data);
  Indexed<TuplePlaces> indexed;
  indexed.inner = ElementsOf(sizes.subspan(batch_rank + length));
  indexed.count = ElementsOf(std::span<const int64_t>(indices).first(indices.size() - 1));
  indexed.size = ElementsOf(sizes.first(batch_rank + length));
  TuplePlaces& places = indexed.places;
  places.length = static_cast<int>(length);
  int64_t stride = 1;
  for (size_t axis = length; axis-- > 0;) {
    places.sizes[axis] = sizes[batch_rank + axis];
    places.strides[axis] = stride;
    stride *= sizes[batch_rank + axis];
  }
  places.batch_stride = stride;
  const int64_t batches = std::max<int64_t>(1, ElementsOf(sizes.first(batch_rank)));
  places.per_batch = Divisor(std::max<int64_t>(1, indexed.count / batches));
  return indexed;
}

}  // namespace onnxtrain
