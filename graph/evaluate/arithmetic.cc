// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two or more tensors: Add, Sub, Mul, Div, Mod, Pow, Min, Max, Sum, Mean.
#include <cmath>

#include "graph/evaluate/elementwise.h"

namespace onnxtrain::evaluation {
namespace {

template <typename Function>
StatusOr<Tensor> ZipNumbers(const Call& call, const Tensor& a, const Tensor& b, Function function) {
  if (a.dtype() != b.dtype()) {
    return call.Error("element types " + std::string(NameOf(a.dtype())) + " and " + std::string(NameOf(b.dtype())) +
                      " differ");
  }
  return VisitNumber(
      a.dtype(),
      [&](auto zero) {
        using T = decltype(zero);
        return ZipAs<T, T, T>(call, a, b, a.dtype(), function);
      },
      [&]() -> StatusOr<Tensor> { return call.UnsupportedType(a.dtype()); });
}

template <typename Function>
Result Binary(const Call& call, Function function) {
  return One(ZipNumbers(call, call.input(0), call.input(1), function));
}

// Combines all inputs from left to right.
template <typename Function>
StatusOr<Tensor> Fold(const Call& call, Function function) {
  Tensor total(call.input(0));
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (!call.Has(i)) return call.Error("input " + std::to_string(i) + " is missing");
    ASSIGN_OR_RETURN(total, ZipNumbers(call, total, call.input(i), function));
  }
  return total;
}

constexpr auto kAdd = [](auto a, auto b) { return WrapAdd(a, b); };

Result RunAdd(const Call& call) { return Binary(call, kAdd); }
Result RunSub(const Call& call) {
  return Binary(call, [](auto a, auto b) { return WrapSub(a, b); });
}
Result RunMul(const Call& call) {
  return Binary(call, [](auto a, auto b) { return WrapMul(a, b); });
}

bool HasIntegerZero(const Tensor& tensor) {
  if (!IsInteger(tensor.dtype())) return false;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.IntAt(i) == 0) return true;
  }
  return false;
}

Result RunDiv(const Call& call) {
  if (HasIntegerZero(call.input(1))) return call.Error("division of an integer by zero");
  return Binary(call, [](auto a, auto b) {
    using T = decltype(a);
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
      if (b == T{-1}) return WrapSub(T{0}, a);  // the smallest integer has no positive twin
    }
    return static_cast<T>(a / b);
  });
}

// The sign of the dividend with fmod = 1 (C), of the divisor with fmod = 0 (Python).
template <typename T>
T Modulo(T a, T b, bool fmod) {
  if constexpr (std::is_floating_point_v<T>) {
    const T remainder = std::fmod(a, b);
    if (fmod || b == T{0} || remainder != remainder) return remainder;
    if (remainder == T{0}) return std::copysign(T{0}, b);
    return (remainder < T{0}) != (b < T{0}) ? remainder + b : remainder;
  } else {
    if constexpr (std::is_signed_v<T>) {
      if (b == T{-1}) return T{0};
    }
    const T remainder = static_cast<T>(a % b);
    const bool adjust = !fmod && remainder != T{0} && (remainder < T{0}) != (b < T{0});
    return adjust ? static_cast<T>(remainder + b) : remainder;
  }
}

Result RunMod(const Call& call) {
  ASSIGN_OR_RETURN(const int64_t fmod, call.Int("fmod", 0));
  if (HasIntegerZero(call.input(1))) return call.Error("remainder of a division by zero");
  return Binary(call, [fmod](auto a, auto b) { return Modulo(a, b, fmod != 0); });
}

// By squaring, with wrapping products. base^-n is the integer part of the quotient: 0 unless the base is 1 or -1.
template <typename T>
T IntegerPower(T base, int64_t exponent) {
  if (exponent < 0) {
    if (base == T{1}) return base;
    if (!std::is_signed_v<T> || base != static_cast<T>(-1)) return T{0};
    return exponent % 2 == 0 ? T{1} : base;
  }
  T result{1};
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = WrapMul(result, base);
    base = WrapMul(base, base);
  }
  return result;
}

template <typename T>
StatusOr<Tensor> PowerOf(const Call& call, const Tensor& base, const Tensor& exponent) {
  const DType dtype = base.dtype();
  if constexpr (std::is_floating_point_v<T>) {
    return ZipAs<T, T, T>(call, base, exponent.CastTo(dtype), dtype, [](T x, T y) { return std::pow(x, y); });
  } else if (IsInteger(exponent.dtype())) {
    return ZipAs<T, int64_t, T>(call, base, exponent.CastTo(DType::kInt64), dtype, IntegerPower<T>);
  } else {
    const Tensor wide = base.CastTo(DType::kDouble);
    ASSIGN_OR_RETURN(const Tensor power,
                     (ZipAs<double, double, double>(call, wide, exponent.CastTo(DType::kDouble), DType::kDouble,
                                                    [](double x, double y) { return std::pow(x, y); })));
    return power.CastTo(dtype);
  }
}

Result RunPow(const Call& call) {
  const Tensor& base = call.input(0);
  const Tensor& exponent = call.input(1);
  if (!IsInteger(exponent.dtype()) && !IsFloating(exponent.dtype())) return call.UnsupportedType(exponent.dtype());
  return One(VisitNumber(
      base.dtype(), [&](auto zero) { return PowerOf<decltype(zero)>(call, base, exponent); },
      [&]() -> StatusOr<Tensor> { return call.UnsupportedType(base.dtype()); }));
}

Result RunMax(const Call& call) {
  return One(Fold(call, [](auto a, auto b) { return Larger(a, b); }));
}
Result RunMin(const Call& call) {
  return One(Fold(call, [](auto a, auto b) { return Smaller(a, b); }));
}
Result RunSum(const Call& call) { return One(Fold(call, kAdd)); }

Result RunMean(const Call& call) {
  if (!IsFloating(call.input(0).dtype())) return call.UnsupportedType(call.input(0).dtype());
  ASSIGN_OR_RETURN(const Tensor total, Fold(call, kAdd));
  const Tensor count = Tensor::Scalar(static_cast<double>(call.inputs.size())).CastTo(total.dtype());
  return One(ZipNumbers(call, total, count, [](auto a, auto b) { return static_cast<decltype(a)>(a / b); }));
}

constexpr Row kRows[] = {
    {"Add", RunAdd, 2, true}, {"Sub", RunSub, 2, true},   {"Mul", RunMul, 2, true}, {"Div", RunDiv, 2, true},
    {"Mod", RunMod, 2, true}, {"Pow", RunPow, 2, true},   {"Max", RunMax, 1, true}, {"Min", RunMin, 1, true},
    {"Sum", RunSum, 1, true}, {"Mean", RunMean, 1, true},
};

}  // namespace

std::span<const Row> ArithmeticRows() { return kRows; }

}  // namespace onnxtrain::evaluation
