// SPDX-License-Identifier: Apache-2.0
// Operators that read elements by index: Gather, GatherElements, GatherND, OneHot, NonZero.
#include <algorithm>

#include "graph/evaluate/evaluation.h"
#include "graph/evaluate/index.h"
#include "graph/evaluate/strided.h"

namespace onnxtrain::evaluation {
namespace {

Result RunGather(const Call& call) {
  const Tensor& data = call.input(0);
  const Tensor& indices = call.input(1);
  ASSIGN_OR_RETURN(const int64_t given, call.Int("axis", 0));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(given, data.type().rank()));
  const auto at = static_cast<size_t>(axis);
  ASSIGN_OR_RETURN(const std::vector<int64_t> rows, ReadIndices(call, indices, data.shape()[at]));
  Shape shape(data.shape().begin(), data.shape().begin() + axis);
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), data.shape().begin() + axis + 1, data.shape().end());
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(data.dtype(), std::move(shape)));
  const std::span<const int64_t> dims(data.shape());
  const size_t row_bytes = SizeOf(data.dtype()) * static_cast<size_t>(ElementsOf(dims.subspan(at + 1)));
  const int64_t outer = result.bytes() == 0 ? 0 : ElementsOf(dims.first(at));
  std::byte* to = result.data();
  for (int64_t i = 0; i < outer; ++i) {
    for (const int64_t row : rows) {
      std::memcpy(to, data.data() + static_cast<size_t>(i * dims[at] + row) * row_bytes, row_bytes);
      to += row_bytes;
    }
  }
  return One(std::move(result));
}

Result RunGatherElements(const Call& call) {
  const Tensor& data = call.input(0);
  const Tensor& indices = call.input(1);
  ASSIGN_OR_RETURN(const int64_t given, call.Int("axis", 0));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(given, data.type().rank()));
  const auto at = static_cast<size_t>(axis);
  RETURN_IF_ERROR(CheckElementIndices(call, data, indices, at));
  ASSIGN_OR_RETURN(const std::vector<int64_t> places, ReadIndices(call, indices, data.shape()[at]));
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(data.dtype(), indices.shape()));
  Strides strides = StridesOf(data.shape());
  const int64_t step = strides[at];
  strides[at] = 0;
  Walk<1> walk(indices.shape(), {strides});
  for (size_t i = 0; i < places.size(); ++i, walk.Next()) {
    CopyElement(data, walk.offset(0) + places[i] * step, result, static_cast<int64_t>(i));
  }
  return One(std::move(result));
}

Result RunGatherNd(const Call& call) {
  const Tensor& data = call.input(0);
  const Tensor& indices = call.input(1);
  ASSIGN_OR_RETURN(const int64_t batch_dims, call.Int("batch_dims", 0));
  ASSIGN_OR_RETURN(const IndexTuples tuples, ReadTuples(call, data, indices, batch_dims));
  Shape shape(indices.shape().begin(), indices.shape().end() - 1);
  shape.insert(shape.end(), data.shape().begin() + batch_dims + tuples.depth, data.shape().end());
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(data.dtype(), std::move(shape)));
  const size_t bytes = static_cast<size_t>(tuples.slice) * SizeOf(data.dtype());
  for (size_t i = 0; i < tuples.offsets.size() && bytes != 0; ++i) {
    std::memcpy(result.data() + i * bytes, data.data() + static_cast<size_t>(tuples.offsets[i]) * SizeOf(data.dtype()),
                bytes);
  }
  return One(std::move(result));
}

Result RunOneHot(const Call& call) {
  const Tensor& indices = call.input(0);
  const Tensor& depth_input = call.input(1);
  const Tensor& values = call.input(2);
  if (depth_input.elements() != 1 || values.elements() != 2) return call.Error("needs one depth and two values");
  const int64_t depth = depth_input.IntAt(0);
  if (depth < 0) return call.Error("depth " + std::to_string(depth) + " is negative");
  ASSIGN_OR_RETURN(const int64_t given, call.Int("axis", -1));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(given, indices.type().rank() + 1));
  Shape shape = indices.shape();
  shape.insert(shape.begin() + axis, depth);
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(values.dtype(), shape));
  const Shape inner_shape(indices.shape().begin() + axis, indices.shape().end());
  const int64_t inner = ElementsOf(inner_shape);
  for (int64_t i = 0; i < result.elements(); ++i) {
    const int64_t place = i / inner % depth;
    int64_t index = indices.IntAt(i / (inner * depth) * inner + i % inner);
    if (index < 0 && index >= -depth) index += depth;
    CopyElement(values, index == place ? 1 : 0, result, i);
  }
  return One(std::move(result));
}

Result RunNonZero(const Call& call) {
  const Tensor& data = call.input(0);
  const int64_t rank = data.type().rank();
  if (rank == 0) return call.Error("a scalar has no positions");
  std::vector<Shape> found;
  Walk<1> walk(data.shape(), {Strides(data.shape().size(), 0)});
  for (int64_t i = 0; i < data.elements(); ++i, walk.Next()) {
    if (data.DoubleAt(i) != 0.0) found.push_back(walk.position());
  }
  const auto count = static_cast<int64_t>(found.size());
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(DType::kInt64, {rank, count}));
  std::span<int64_t> values = result.values<int64_t>();
  for (int64_t axis = 0; axis < rank; ++axis) {
    for (int64_t i = 0; i < count; ++i) {
      values[static_cast<size_t>(axis * count + i)] = found[static_cast<size_t>(i)][static_cast<size_t>(axis)];
    }
  }
  return One(std::move(result));
}

constexpr Row kRows[] = {
    {"Gather", RunGather, 2},     {"GatherElements", RunGatherElements, 2},
    {"GatherND", RunGatherNd, 2}, {"OneHot", RunOneHot, 3},
    {"NonZero", RunNonZero, 1},
};

}  // namespace

std::span<const Row> GatherRows() { return kRows; }

}  // namespace onnxtrain::evaluation
