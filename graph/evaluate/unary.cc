// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of one tensor, and Clip.
#include <cmath>

#include "graph/evaluate/evaluation.h"

namespace onnxtrain::evaluation {
namespace {

template <typename Function>
Result MapFloats(const Call& call, Function function) {
  const DType dtype = call.input(0).dtype();
  return VisitFloat(
      dtype,
      [&](auto zero) -> Result {
        using T = decltype(zero);
        Tensor result(call.input(0));
        for (T& x : result.values<T>()) x = function(x);
        return One(std::move(result));
      },
      [&]() -> Result { return call.UnsupportedType(dtype); });
}

template <typename Function>
Result MapNumbers(const Call& call, Function function) {
  const DType dtype = call.input(0).dtype();
  return VisitNumber(
      dtype,
      [&](auto zero) -> Result {
        using T = decltype(zero);
        Tensor result(call.input(0));
        for (T& x : result.values<T>()) x = function(x);
        return One(std::move(result));
      },
      [&]() -> Result { return call.UnsupportedType(dtype); });
}

Result RunSqrt(const Call& call) {
  return MapFloats(call, [](auto x) { return std::sqrt(x); });
}
Result RunExp(const Call& call) {
  return MapFloats(call, [](auto x) { return std::exp(x); });
}
Result RunLog(const Call& call) {
  return MapFloats(call, [](auto x) { return std::log(x); });
}
Result RunErf(const Call& call) {
  return MapFloats(call, [](auto x) { return std::erf(x); });
}
Result RunSin(const Call& call) {
  return MapFloats(call, [](auto x) { return std::sin(x); });
}
Result RunCos(const Call& call) {
  return MapFloats(call, [](auto x) { return std::cos(x); });
}
Result RunTanh(const Call& call) {
  return MapFloats(call, [](auto x) { return std::tanh(x); });
}
Result RunFloor(const Call& call) {
  return MapFloats(call, [](auto x) { return std::floor(x); });
}
Result RunCeil(const Call& call) {
  return MapFloats(call, [](auto x) { return std::ceil(x); });
}
// Half to even, the rounding mode of a program that never changes it.
Result RunRound(const Call& call) {
  return MapFloats(call, [](auto x) { return std::nearbyint(x); });
}
Result RunReciprocal(const Call& call) {
  return MapFloats(call, [](auto x) { return decltype(x){1} / x; });
}

// Never evaluates exp of a large positive number.
Result RunSigmoid(const Call& call) {
  return MapFloats(call, [](auto x) {
    using T = decltype(x);
    const T e = std::exp(-std::abs(x));
    return x >= T{0} ? T{1} / (T{1} + e) : e / (T{1} + e);
  });
}

Result RunNeg(const Call& call) {
  return MapNumbers(call, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) {
      return -x;
    } else {
      return WrapSub(T{0}, x);
    }
  });
}

Result RunAbs(const Call& call) {
  return MapNumbers(call, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) {
      return std::abs(x);
    } else if constexpr (std::is_signed_v<T>) {
      return x < T{0} ? WrapSub(T{0}, x) : x;
    } else {
      return x;
    }
  });
}

Result RunSign(const Call& call) {
  return MapNumbers(call, [](auto x) {
    using T = decltype(x);
    if (x != x) return x;
    return static_cast<T>(static_cast<int>(x > T{0}) - static_cast<int>(x < T{0}));
  });
}

Result RunRelu(const Call& call) {
  return MapNumbers(call, [](auto x) { return x < decltype(x){0} ? decltype(x){0} : x; });
}

Result RunClip(const Call& call) {
  const DType dtype = call.input(0).dtype();
  for (size_t i = 1; i < 3; ++i) {
    if (call.Has(i) && (call.input(i).elements() != 1 || call.input(i).dtype() != dtype)) {
      return call.Error("bounds must be one element of the input's type");
    }
  }
  return VisitNumber(
      dtype,
      [&](auto zero) -> Result {
        using T = decltype(zero);
        Tensor result(call.input(0));
        for (T& x : result.values<T>()) {
          if (call.Has(1)) x = Larger(x, call.input(1).values<T>()[0]);
          if (call.Has(2)) x = Smaller(x, call.input(2).values<T>()[0]);
        }
        return One(std::move(result));
      },
      [&]() -> Result { return call.UnsupportedType(dtype); });
}

constexpr Row kRows[] = {
    {"Sqrt", RunSqrt, 1, true},   {"Exp", RunExp, 1, true},         {"Log", RunLog, 1, true},
    {"Erf", RunErf, 1, true},     {"Sin", RunSin, 1, true},         {"Cos", RunCos, 1, true},
    {"Tanh", RunTanh, 1, true},   {"Floor", RunFloor, 1, true},     {"Ceil", RunCeil, 1, true},
    {"Round", RunRound, 1, true}, {"Sigmoid", RunSigmoid, 1, true}, {"Reciprocal", RunReciprocal, 1, true},
    {"Neg", RunNeg, 1, true},     {"Abs", RunAbs, 1, true},         {"Sign", RunSign, 1, true},
    {"Relu", RunRelu, 1, true},   {"Clip", RunClip, 1, true},
};

}  // namespace

std::span<const Row> UnaryRows() { return kRows; }

}  // namespace onnxtrain::evaluation
