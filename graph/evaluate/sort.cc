// SPDX-License-Identifier: Apache-2.0
// TopK. Equal values keep the order of their indices.
#include <algorithm>
#include <numeric>

#include "graph/evaluate/evaluation.h"
#include "graph/evaluate/strided.h"

namespace onnxtrain::evaluation {
namespace {

struct Selection {
  size_t axis = 0;
  int64_t k = 0;
  bool largest = true;
};

// NaN counts as larger than every number, so that the order is total.
template <typename T>
bool Before(T a, T b, bool largest) {
  if (a != a || b != b) return largest ? a != a && b == b : a == a && b != b;
  return largest ? a > b : a < b;
}

template <typename T>
void Select(const Tensor& data, const Selection& selection, Tensor& values, Tensor& indices) {
  const int64_t dim = data.shape()[selection.axis];
  const Strides from = StridesOf(data.shape());
  const Strides to = StridesOf(values.shape());
  Shape lines = data.shape();
  lines[selection.axis] = 1;
  Walk<2> walk(lines, {from, to});
  const std::span<const T> x = data.values<T>();
  std::vector<int64_t> order(static_cast<size_t>(dim));
  const int64_t count = dim == 0 ? 0 : ElementsOf(lines);
  for (int64_t line = 0; line < count; ++line, walk.Next()) {
    const auto at = [&](int64_t i) { return x[static_cast<size_t>(walk.offset(0) + i * from[selection.axis])]; };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return Before(at(a), at(b), selection.largest); });
    for (int64_t i = 0; i < selection.k; ++i) {
      const auto place = static_cast<size_t>(walk.offset(1) + i * to[selection.axis]);
      values.values<T>()[place] = at(order[static_cast<size_t>(i)]);
      indices.values<int64_t>()[place] = order[static_cast<size_t>(i)];
    }
  }
}

Result RunTopK(const Call& call) {
  const Tensor& data = call.input(0);
  ASSIGN_OR_RETURN(const int64_t k, call.IntInput(1));
  ASSIGN_OR_RETURN(const int64_t given, call.Int("axis", -1));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(given, data.type().rank()));
  ASSIGN_OR_RETURN(const int64_t largest, call.Int("largest", 1));
  Shape shape = data.shape();
  if (k < 0 || k > shape[static_cast<size_t>(axis)]) {
    return call.Error("k = " + std::to_string(k) + " of an axis of " +
                      std::to_string(shape[static_cast<size_t>(axis)]));
  }
  shape[static_cast<size_t>(axis)] = k;
  ASSIGN_OR_RETURN(Tensor values, call.NewTensor(data.dtype(), shape));
  ASSIGN_OR_RETURN(Tensor indices, call.NewTensor(DType::kInt64, shape));
  const Selection selection{static_cast<size_t>(axis), k, largest != 0};
  const bool served = VisitNumber(
      data.dtype(),
      [&](auto zero) {
        Select<decltype(zero)>(data, selection, values, indices);
        return true;
      },
      [] { return false; });
  if (!served) return call.UnsupportedType(data.dtype());
  std::vector<Tensor> outputs;
  outputs.push_back(std::move(values));
  outputs.push_back(std::move(indices));
  return outputs;
}

constexpr Row kRows[] = {{"TopK", RunTopK, 2, true}};

}  // namespace

std::span<const Row> SortRows() { return kRows; }

}  // namespace onnxtrain::evaluation
