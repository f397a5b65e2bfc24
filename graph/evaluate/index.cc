// SPDX-License-Identifier: Apache-2.0
#include "graph/evaluate/index.h"

#include <algorithm>

#include "graph/evaluate/strided.h"

namespace onnxtrain::evaluation {
namespace {

Status OutOfRange(const Call& call, int64_t index, int64_t dim) {
  return call.Error("index " + std::to_string(index) + " is out of range for an axis of " + std::to_string(dim));
}

}  // namespace

StatusOr<std::vector<int64_t>> ReadIndices(const Call& call, const Tensor& indices, int64_t dim) {
  if (!IsInteger(indices.dtype())) return call.Error("indices must be integers, found " + ToString(indices.type()));
  std::vector<int64_t> result(static_cast<size_t>(indices.elements()));
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t index = indices.IntAt(static_cast<int64_t>(i));
    if (index < -dim || index >= dim) return OutOfRange(call, index, dim);
    result[i] = index < 0 ? index + dim : index;
  }
  return result;
}

Status CheckElementIndices(const Call& call, const Tensor& data, const Tensor& indices, size_t axis) {
  bool fits = data.type().rank() == indices.type().rank();
  for (size_t i = 0; fits && i < data.shape().size(); ++i) {
    fits = i == axis || indices.shape()[i] <= data.shape()[i];
  }
  if (fits) return OkStatus();
  return call.Error("indices " + ToString(indices.type()) + " do not fit data " + ToString(data.type()));
}

StatusOr<IndexTuples> ReadTuples(const Call& call, const Tensor& data, const Tensor& indices, int64_t batch_dims) {
  const int64_t rank = data.type().rank();
  if (!IsInteger(indices.dtype()) || indices.type().rank() < 1 || batch_dims < 0 ||
      batch_dims >= std::min(rank, indices.type().rank()) + (batch_dims == 0 ? 1 : 0)) {
    return call.Error("indices " + ToString(indices.type()) + " do not fit data " + ToString(data.type()));
  }
  IndexTuples tuples;
  tuples.depth = indices.shape().back();
  if (batch_dims + tuples.depth > rank) return call.Error("tuples are longer than the rank of the data");
  const std::span<const int64_t> dims(data.shape());
  const auto batches = static_cast<size_t>(batch_dims);
  if (!std::equal(dims.begin(), dims.begin() + batch_dims, indices.shape().begin())) {
    return call.Error("batch axes differ");
  }
  tuples.slice = ElementsOf(dims.subspan(batches + static_cast<size_t>(tuples.depth)));
  const Strides strides = StridesOf(data.shape());
  const int64_t batch_elements = ElementsOf(dims.subspan(batches));
  const int64_t count = ElementsOf(std::span<const int64_t>(indices.shape()).first(indices.shape().size() - 1));
  const int64_t per_batch = std::max<int64_t>(1, count / std::max<int64_t>(1, ElementsOf(dims.first(batches))));
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = i / per_batch * batch_elements;
    for (int64_t j = 0; j < tuples.depth; ++j) {
      const int64_t dim = dims[batches + static_cast<size_t>(j)];
      const int64_t index = indices.IntAt(i * tuples.depth + j);
      if (index < -dim || index >= dim) return OutOfRange(call, index, dim);
      offset += (index < 0 ? index + dim : index) * strides[batches + static_cast<size_t>(j)];
    }
    tuples.offsets.push_back(offset);
  }
  return tuples;
}

}  // namespace onnxtrain::evaluation
