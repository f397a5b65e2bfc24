// SPDX-License-Identifier: Apache-2.0
// Comparisons, bool and bitwise operators, IsNaN and IsInf.
#include <cmath>

#include "graph/evaluate/elementwise.h"

namespace onnxtrain::evaluation {
namespace {

template <typename Function>
Result Compare(const Call& call, Function function) {
  const Tensor& a = call.input(0);
  const Tensor& b = call.input(1);
  if (a.dtype() != b.dtype()) return call.Error("element types differ");
  if (a.dtype() == DType::kBool) return One(ZipAs<uint8_t, uint8_t, bool>(call, a, b, DType::kBool, function));
  return One(VisitNumber(
      a.dtype(),
      [&](auto zero) {
        using T = decltype(zero);
        return ZipAs<T, T, bool>(call, a, b, DType::kBool, function);
      },
      [&]() -> StatusOr<Tensor> { return call.UnsupportedType(a.dtype()); }));
}

Result RunEqual(const Call& call) {
  return Compare(call, [](auto a, auto b) { return a == b; });
}
Result RunGreater(const Call& call) {
  return Compare(call, [](auto a, auto b) { return a > b; });
}
Result RunGreaterOrEqual(const Call& call) {
  return Compare(call, [](auto a, auto b) { return a >= b; });
}
Result RunLess(const Call& call) {
  return Compare(call, [](auto a, auto b) { return a < b; });
}
Result RunLessOrEqual(const Call& call) {
  return Compare(call, [](auto a, auto b) { return a <= b; });
}

template <typename Function>
Result Logic(const Call& call, Function function) {
  for (size_t i = 0; i < 2; ++i) {
    if (call.input(i).dtype() != DType::kBool) return call.UnsupportedType(call.input(i).dtype());
  }
  return One(ZipAs<bool, bool, bool>(call, call.input(0), call.input(1), DType::kBool, function));
}

Result RunAnd(const Call& call) {
  return Logic(call, [](bool a, bool b) { return a && b; });
}
Result RunOr(const Call& call) {
  return Logic(call, [](bool a, bool b) { return a || b; });
}
Result RunXor(const Call& call) {
  return Logic(call, [](bool a, bool b) { return a != b; });
}

Result RunNot(const Call& call) {
  if (call.input(0).dtype() != DType::kBool) return call.UnsupportedType(call.input(0).dtype());
  Tensor result(call.input(0));
  for (bool& value : result.values<bool>()) value = !value;
  return One(std::move(result));
}

template <typename Function>
Result Bits(const Call& call, Function function) {
  const Tensor& a = call.input(0);
  const Tensor& b = call.input(1);
  if (a.dtype() != b.dtype() || !IsInteger(a.dtype())) return call.Error("needs two integer tensors of one type");
  return One(VisitNumber(
      a.dtype(),
      [&](auto zero) -> StatusOr<Tensor> {
        using T = decltype(zero);
        if constexpr (std::is_integral_v<T>) {
          return ZipAs<T, T, T>(call, a, b, a.dtype(), [&](T x, T y) { return static_cast<T>(function(x, y)); });
        } else {
          return call.UnsupportedType(a.dtype());
        }
      },
      [&]() -> StatusOr<Tensor> { return call.UnsupportedType(a.dtype()); }));
}

Result RunBitwiseAnd(const Call& call) {
  return Bits(call, [](auto a, auto b) { return a & b; });
}
Result RunBitwiseOr(const Call& call) {
  return Bits(call, [](auto a, auto b) { return a | b; });
}
Result RunBitwiseXor(const Call& call) {
  return Bits(call, [](auto a, auto b) { return a ^ b; });
}

template <typename Function>
Result Classify(const Call& call, Function function) {
  const Tensor& data = call.input(0);
  return VisitFloat(
      data.dtype(),
      [&](auto zero) -> Result {
        using T = decltype(zero);
        ASSIGN_OR_RETURN(Tensor result, call.NewTensor(DType::kBool, data.shape()));
        std::span<bool> flags = result.values<bool>();
        for (size_t i = 0; i < flags.size(); ++i) flags[i] = function(data.values<T>()[i]);
        return One(std::move(result));
      },
      [&]() -> Result { return call.UnsupportedType(data.dtype()); });
}

Result RunIsNan(const Call& call) {
  return Classify(call, [](auto x) { return std::isnan(x); });
}

Result RunIsInf(const Call& call) {
  ASSIGN_OR_RETURN(const int64_t positive, call.Int("detect_positive", 1));
  ASSIGN_OR_RETURN(const int64_t negative, call.Int("detect_negative", 1));
  return Classify(call, [&](auto x) { return std::isinf(x) && (x > 0 ? positive : negative) != 0; });
}

constexpr Row kRows[] = {
    {"Equal", RunEqual, 2, true},
    {"Greater", RunGreater, 2, true},
    {"GreaterOrEqual", RunGreaterOrEqual, 2, true},
    {"Less", RunLess, 2, true},
    {"LessOrEqual", RunLessOrEqual, 2, true},
    {"And", RunAnd, 2},
    {"Or", RunOr, 2},
    {"Xor", RunXor, 2},
    {"Not", RunNot, 1},
    {"BitwiseAnd", RunBitwiseAnd, 2},
    {"BitwiseOr", RunBitwiseOr, 2},
    {"BitwiseXor", RunBitwiseXor, 2},
    {"IsNaN", RunIsNan, 1, true},
    {"IsInf", RunIsInf, 1, true},
};

}  // namespace

std::span<const Row> LogicRows() { return kRows; }

}  // namespace onnxtrain::evaluation
