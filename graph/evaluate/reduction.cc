// SPDX-License-Identifier: Apache-2.0
// Reduce*, ArgMax, ArgMin, CumSum.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/evaluate/evaluation.h"
#include "graph/evaluate/strided.h"

namespace onnxtrain::evaluation {
namespace {

struct Reduction {
  std::vector<bool> reduced;  // by axis
  Shape kept;                 // the input's shape with 1 in reduced axes
  Shape result;               // without those axes unless keepdims
  int64_t count = 1;          // elements that go into one result
};

StatusOr<Reduction> ReadReduction(const Call& call) {
  const Shape& shape = call.input(0).shape();
  std::vector<int64_t> axes;
  if (call.Has(1)) {
    ASSIGN_OR_RETURN(axes, call.IntsInput(1));
    ASSIGN_OR_RETURN(axes, call.Axes(axes, call.input(0).type().rank()));
  }
  ASSIGN_OR_RETURN(const int64_t keepdims, call.Int("keepdims", 1));
  ASSIGN_OR_RETURN(const int64_t noop, call.Int("noop_with_empty_axes", 0));
  Reduction reduction;
  reduction.reduced.assign(shape.size(), axes.empty() && noop == 0);
  for (const int64_t axis : axes) reduction.reduced[static_cast<size_t>(axis)] = true;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = reduction.reduced[i];
    reduction.kept.push_back(reduced ? 1 : shape[i]);
    if (!reduced || keepdims != 0) reduction.result.push_back(reduced ? 1 : shape[i]);
    if (reduced) reduction.count *= shape[i];
  }
  return reduction;
}

// Floats are accumulated in double; integers in 64 bits, so that narrow ones wrap only where they are stored.
template <typename T>
using Accumulator =
    std::conditional_t<std::is_floating_point_v<T>, double, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <typename T, typename Combine, typename Finish>
Result Reduce(const Call& call, Accumulator<T> start, Combine combine, Finish finish) {
  ASSIGN_OR_RETURN(const Reduction reduction, ReadReduction(call));
  const Tensor& data = call.input(0);
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(data.dtype(), reduction.kept));
  std::vector<Accumulator<T>> totals(static_cast<size_t>(result.elements()), start);
  Walk<1> walk(data.shape(), {BroadcastStrides(reduction.kept, data.shape())});
  for (const T value : data.values<T>()) {
    Accumulator<T>& total = totals[static_cast<size_t>(walk.offset(0))];
    total = combine(total, static_cast<Accumulator<T>>(value));
    walk.Next();
  }
  std::span<T> values = result.values<T>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(finish(totals[i], reduction.count));
  return One(result.Reshaped(reduction.result));
}

constexpr auto kAsIs = [](auto total, int64_t) { return total; };

Result RunReduceSum(const Call& call) {
  return VisitNumber(
      call.input(0).dtype(),
      [&](auto zero) {
        return Reduce<decltype(zero)>(
            call, 0, [](auto a, auto b) { return WrapAdd(a, b); }, kAsIs);
      },
      [&]() -> Result { return call.UnsupportedType(call.input(0).dtype()); });
}

Result RunReduceProd(const Call& call) {
  return VisitNumber(
      call.input(0).dtype(),
      [&](auto zero) {
        return Reduce<decltype(zero)>(
            call, 1, [](auto a, auto b) { return WrapMul(a, b); }, kAsIs);
      },
      [&]() -> Result { return call.UnsupportedType(call.input(0).dtype()); });
}

Result RunReduceMean(const Call& call) {
  if (IsInteger(call.input(0).dtype()) && call.input(0).elements() == 0) return call.Error("mean of no integers");
  return VisitNumber(
      call.input(0).dtype(),
      [&](auto zero) {
        return Reduce<decltype(zero)>(
            call, 0, [](auto a, auto b) { return WrapAdd(a, b); },
            [](auto total, int64_t count) { return total / static_cast<decltype(total)>(count); });
      },
      [&]() -> Result { return call.UnsupportedType(call.input(0).dtype()); });
}

template <typename T>
T Lowest() {
  return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}
template <typename T>
T Highest() {
  return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
}

Result ReduceExtremum(const Call& call, bool largest) {
  return VisitNumber(
      call.input(0).dtype(),
      [&](auto zero) {
        using T = decltype(zero);
        return Reduce<T>(
            call, static_cast<Accumulator<T>>(largest ? Lowest<T>() : Highest<T>()),
            [largest](auto a, auto b) { return largest ? Larger(a, b) : Smaller(a, b); }, kAsIs);
      },
      [&]() -> Result { return call.UnsupportedType(call.input(0).dtype()); });
}

// A bool is reduced as the number 0 or 1.
Result RunExtremum(const Call& call, bool largest) {
  if (call.input(0).dtype() != DType::kBool) return ReduceExtremum(call, largest);
  const Tensor bytes = call.input(0).CastTo(DType::kUint8);
  std::vector<const Tensor*> inputs(call.inputs.begin(), call.inputs.end());
  inputs[0] = &bytes;
  Result result = ReduceExtremum({call.op, call.attributes, inputs, call.outputs}, largest);
  if (!result.ok()) return result;
  return One((*result)[0].CastTo(DType::kBool));
}

Result RunReduceMax(const Call& call) { return RunExtremum(call, true); }
Result RunReduceMin(const Call& call) { return RunExtremum(call, false); }

template <typename T>
void FindExtrema(const Tensor& data, size_t axis, bool largest, bool last, Tensor& result) {
  const Strides strides = StridesOf(data.shape());
  Strides others = strides;
  others[axis] = 0;
  Walk<1> walk(result.shape(), {others});
  const std::span<const T> values = data.values<T>();
  for (int64_t& found : result.values<int64_t>()) {
    T best = values[static_cast<size_t>(walk.offset(0))];
    for (int64_t i = 1; i < data.shape()[axis]; ++i) {
      const T value = values[static_cast<size_t>(walk.offset(0) + i * strides[axis])];
      if ((largest ? value > best : value < best) || (last && value == best)) {
        best = value;
        found = i;
      }
    }
    walk.Next();
  }
}

Result ArgExtremum(const Call& call, bool largest) {
  const Tensor& data = call.input(0);
  ASSIGN_OR_RETURN(const int64_t given, call.Int("axis", 0));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(given, data.type().rank()));
  ASSIGN_OR_RETURN(const int64_t keepdims, call.Int("keepdims", 1));
  ASSIGN_OR_RETURN(const int64_t last, call.Int("select_last_index", 0));
  Shape shape = data.shape();
  if (shape[static_cast<size_t>(axis)] == 0) return call.Error("axis " + std::to_string(axis) + " is empty");
  shape[static_cast<size_t>(axis)] = 1;
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(DType::kInt64, shape));
  const bool served = VisitNumber(
      data.dtype(),
      [&](auto zero) {
        FindExtrema<decltype(zero)>(data, static_cast<size_t>(axis), largest, last != 0, result);
        return true;
      },
      [] { return false; });
  if (!served) return call.UnsupportedType(data.dtype());
  if (keepdims == 0) shape.erase(shape.begin() + axis);
  return One(result.Reshaped(std::move(shape)));
}

Result RunArgMax(const Call& call) { return ArgExtremum(call, true); }
Result RunArgMin(const Call& call) { return ArgExtremum(call, false); }

template <typename T>
void Accumulate(const Tensor& data, size_t axis, bool exclusive, bool reverse, Tensor& result) {
  const int64_t dim = data.shape()[axis];
  const Strides strides = StridesOf(data.shape());
  Shape lines = data.shape();
  lines[axis] = 1;
  Walk<1> walk(lines, {strides});
  const int64_t count = dim == 0 ? 0 : ElementsOf(lines);
  for (int64_t line = 0; line < count; ++line, walk.Next()) {
    Accumulator<T> total{};
    for (int64_t i = 0; i < dim; ++i) {
      const auto at = static_cast<size_t>(walk.offset(0) + (reverse ? dim - 1 - i : i) * strides[axis]);
      const Accumulator<T> next = WrapAdd(total, static_cast<Accumulator<T>>(data.values<T>()[at]));
      result.values<T>()[at] = static_cast<T>(exclusive ? total : next);
      total = next;
    }
  }
}

Result RunCumSum(const Call& call) {
  const Tensor& data = call.input(0);
  ASSIGN_OR_RETURN(const int64_t given, call.IntInput(1));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(given, data.type().rank()));
  ASSIGN_OR_RETURN(const int64_t exclusive, call.Int("exclusive", 0));
  ASSIGN_OR_RETURN(const int64_t reverse, call.Int("reverse", 0));
  Tensor result(data);
  const bool served = VisitNumber(
      data.dtype(),
      [&](auto zero) {
        Accumulate<decltype(zero)>(data, static_cast<size_t>(axis), exclusive != 0, reverse != 0, result);
        return true;
      },
      [] { return false; });
  if (!served) return call.UnsupportedType(data.dtype());
  return One(std::move(result));
}

constexpr Row kRows[] = {
    {"ReduceSum", RunReduceSum, 1, true},   {"ReduceProd", RunReduceProd, 1, true},
    {"ReduceMean", RunReduceMean, 1, true}, {"ReduceMax", RunReduceMax, 1, true},
    {"ReduceMin", RunReduceMin, 1, true},   {"ArgMax", RunArgMax, 1, true},
    {"ArgMin", RunArgMin, 1, true},         {"CumSum", RunCumSum, 2, true},
};

}  // namespace

std::span<const Row> ReductionRows() { return kRows; }

}  // namespace onnxtrain::evaluation
