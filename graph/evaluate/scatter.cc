// SPDX-License-Identifier: Apache-2.0
// Operators that write elements by index: ScatterElements, ScatterND. Later updates of one place win.
#include <functional>

#include "graph/evaluate/evaluation.h"
#include "graph/evaluate/index.h"
#include "graph/evaluate/strided.h"

namespace onnxtrain::evaluation {
namespace {

// Puts element `from` of updates at element `to` of result, combining the two as the reduction says.
using Combine = std::function<void(const Tensor& updates, int64_t from, Tensor& result, int64_t to)>;

template <typename T>
T Reduce(std::string_view reduction, T old, T update) {
  if (reduction == "add") return WrapAdd(old, update);
  if (reduction == "mul") return WrapMul(old, update);
  return reduction == "max" ? Larger(old, update) : Smaller(old, update);
}

StatusOr<Combine> ReadReduction(const Call& call) {
  const Tensor& data = call.input(0);
  if (call.input(2).dtype() != data.dtype()) return call.Error("updates must have the type of the data");
  ASSIGN_OR_RETURN(const std::string reduction, call.String("reduction", "none"));
  if (reduction == "none") return Combine(CopyElement);
  if (reduction != "add" && reduction != "mul" && reduction != "max" && reduction != "min") {
    return call.Error("reduction '" + reduction + "' is unknown");
  }
  return VisitNumber(
      data.dtype(),
      [&](auto zero) -> StatusOr<Combine> {
        using T = decltype(zero);
        return Combine([reduction](const Tensor& updates, int64_t from, Tensor& result, int64_t to) {
          T& old = result.values<T>()[static_cast<size_t>(to)];
          old = Reduce(reduction, old, updates.values<T>()[static_cast<size_t>(from)]);
        });
      },
      [&]() -> StatusOr<Combine> { return call.UnsupportedType(data.dtype()); });
}

Result RunScatterElements(const Call& call) {
  const Tensor& data = call.input(0);
  const Tensor& indices = call.input(1);
  const Tensor& updates = call.input(2);
  ASSIGN_OR_RETURN(const int64_t given, call.Int("axis", 0));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(given, data.type().rank()));
  const auto at = static_cast<size_t>(axis);
  RETURN_IF_ERROR(CheckElementIndices(call, data, indices, at));
  if (updates.shape() != indices.shape()) return call.Error("updates and indices differ in shape");
  ASSIGN_OR_RETURN(const std::vector<int64_t> places, ReadIndices(call, indices, data.shape()[at]));
  ASSIGN_OR_RETURN(const Combine combine, ReadReduction(call));
  Strides strides = StridesOf(data.shape());
  const int64_t step = strides[at];
  strides[at] = 0;
  Tensor result(data);
  Walk<1> walk(indices.shape(), {strides});
  for (size_t i = 0; i < places.size(); ++i, walk.Next()) {
    combine(updates, static_cast<int64_t>(i), result, walk.offset(0) + places[i] * step);
  }
  return One(std::move(result));
}

Result RunScatterNd(const Call& call) {
  const Tensor& data = call.input(0);
  const Tensor& indices = call.input(1);
  const Tensor& updates = call.input(2);
  ASSIGN_OR_RETURN(const IndexTuples tuples, ReadTuples(call, data, indices, /*batch_dims=*/0));
  Shape shape(indices.shape().begin(), indices.shape().end() - 1);
  shape.insert(shape.end(), data.shape().begin() + tuples.depth, data.shape().end());
  if (updates.shape() != shape) {
    return call.Error("updates must have shape " + ToString(shape) + ", found " + ToString(updates.type()));
  }
  ASSIGN_OR_RETURN(const Combine combine, ReadReduction(call));
  Tensor result(data);
  for (size_t i = 0; i < tuples.offsets.size(); ++i) {
    for (int64_t j = 0; j < tuples.slice; ++j) {
      combine(updates, static_cast<int64_t>(i) * tuples.slice + j, result, tuples.offsets[i] + j);
    }
  }
  return One(std::move(result));
}

constexpr Row kRows[] = {{"ScatterElements", RunScatterElements, 3, true}, {"ScatterND", RunScatterNd, 3, true}};

}  // namespace

std::span<const Row> ScatterRows() { return kRows; }

}  // namespace onnxtrain::evaluation
