// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/isa/binary_loops.h"

#include "runtime/math/functions.h"

namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE {
namespace {

#define ONNXTRAIN_FORMULA \
  template <typename T>   \
  ONNXTRAIN_HOST_DEVICE static inline T

struct Add {
  ONNXTRAIN_FORMULA Of(T a, T b) { return a + b; }
};
struct Sub {
  ONNXTRAIN_FORMULA Of(T a, T b) { return a - b; }
};
struct Mul {
  ONNXTRAIN_FORMULA Of(T a, T b) { return a * b; }
};
struct Div {
  ONNXTRAIN_FORMULA Of(T a, T b) { return a / b; }
};
struct Max {
  ONNXTRAIN_FORMULA Of(T a, T b) { return math::Max(a, b); }
};
struct Min {
  ONNXTRAIN_FORMULA Of(T a, T b) { return math::Min(a, b); }
};
struct PRelu {
  ONNXTRAIN_FORMULA Of(T a, T b) { return a > T(0) ? a : b * a; }
};
struct Pow {
  ONNXTRAIN_HOST_DEVICE static inline float Of(float a, float b) { return __builtin_powf(a, b); }
  ONNXTRAIN_HOST_DEVICE static inline double Of(double a, double b) { return __builtin_pow(a, b); }
};
struct Fmod {
  ONNXTRAIN_HOST_DEVICE static inline float Of(float a, float b) { return __builtin_fmodf(a, b); }
  ONNXTRAIN_HOST_DEVICE static inline double Of(double a, double b) { return __builtin_fmod(a, b); }
};

template <typename Formula, typename T>
inline void WithScalar(T a, const T* b, T* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Formula::Of(a, b[i]);
}

template <typename Formula, typename T>
inline void ByScalar(const T* a, T b, T* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Formula::Of(a[i], b);
}

template <typename Formula, typename T>
void Loop(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
  if (a_step == 0 && b_step != 0) return WithScalar<Formula>(*a, b, y, n);
  if (b_step == 0 && a_step != 0) return ByScalar<Formula>(a, *b, y, n);
  if (a_step == 0) {
    const T value = Formula::Of(*a, *b);
    for (int64_t i = 0; i < n; ++i) y[i] = value;
    return;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Formula::Of(a[i], b[i]);
}

// Squares and cubes are what exports write.
template <typename T>
void PowLoop(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
  if (a_step == 1 && b_step == 0 && *b == T(2)) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = a[i] * a[i];
  } else if (a_step == 1 && b_step == 0 && *b == T(3)) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = a[i] * a[i] * a[i];
  } else {
    Loop<Pow, T>(a, a_step, b, b_step, y, n);
  }
}

template <typename T>
BinaryLoop<T> Find(BinaryFunction function) {
  switch (function) {
    case BinaryFunction::kAdd:
      return &Loop<Add, T>;
    case BinaryFunction::kSub:
      return &Loop<Sub, T>;
    case BinaryFunction::kMul:
      return &Loop<Mul, T>;
    case BinaryFunction::kDiv:
      return &Loop<Div, T>;
    case BinaryFunction::kMax:
      return &Loop<Max, T>;
    case BinaryFunction::kMin:
      return &Loop<Min, T>;
    case BinaryFunction::kPow:
      return &PowLoop<T>;
    case BinaryFunction::kFmod:
      return &Loop<Fmod, T>;
    case BinaryFunction::kPRelu:
      return &Loop<PRelu, T>;
  }
  return nullptr;
}

// kA, kB: the step of that operand is 1.
template <bool kA, bool kB, typename Bits>
inline void SelectSteps(const uint8_t* condition, const Bits* a, const Bits* b, Bits* y, int64_t n) {
  const Bits a0 = *a;
  const Bits b0 = *b;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const Bits yes = kA ? a[i] : a0;
    const Bits no = kB ? b[i] : b0;
    y[i] = condition[i] != 0 ? yes : no;
  }
}

template <typename Bits>
inline void Copy(const Bits* from, int64_t step, Bits* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = from[i * step];
}

template <typename Bits>
inline void SelectAny(const uint8_t* condition, int64_t condition_step, const Bits* a, int64_t a_step, const Bits* b,
                      int64_t b_step, Bits* y, int64_t n) {
  if (n <= 0) return;
  if (condition_step == 0) return *condition != 0 ? Copy(a, a_step, y, n) : Copy(b, b_step, y, n);
  if (a_step != 0 && b_step != 0) return SelectSteps<true, true>(condition, a, b, y, n);
  if (a_step != 0) return SelectSteps<true, false>(condition, a, b, y, n);
  if (b_step != 0) return SelectSteps<false, true>(condition, a, b, y, n);
  return SelectSteps<false, false>(condition, a, b, y, n);
}

}  // namespace

BinaryLoop<float> FloatBinaryLoop(BinaryFunction function) { return Find<float>(function); }
BinaryLoop<double> DoubleBinaryLoop(BinaryFunction function) { return Find<double>(function); }
void Select1(const uint8_t* condition, int64_t condition_step, const uint8_t* a, int64_t a_step, const uint8_t* b,
             int64_t b_step, uint8_t* y, int64_t n) {
  SelectAny(condition, condition_step, a, a_step, b, b_step, y, n);
}
void Select2(const uint8_t* condition, int64_t condition_step, const uint16_t* a, int64_t a_step, const uint16_t* b,
             int64_t b_step, uint16_t* y, int64_t n) {
  SelectAny(condition, condition_step, a, a_step, b, b_step, y, n);
}
void Select4(const uint8_t* condition, int64_t condition_step, const uint32_t* a, int64_t a_step, const uint32_t* b,
             int64_t b_step, uint32_t* y, int64_t n) {
  SelectAny(condition, condition_step, a, a_step, b, b_step, y, n);
}
void Select8(const uint8_t* condition, int64_t condition_step, const uint64_t* a, int64_t a_step, const uint64_t* b,
             int64_t b_step, uint64_t* y, int64_t n) {
  SelectAny(condition, condition_step, a, a_step, b, b_step, y, n);
}

}  // namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE
