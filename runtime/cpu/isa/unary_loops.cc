// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/isa/unary_loops.h"

namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE {
namespace {

#define ONNXTRAIN_FORMULA \
  template <typename T>   \
  ONNXTRAIN_HOST_DEVICE static inline T

// Functions of math.h for both types.
#define ONNXTRAIN_LIBRARY_FUNCTION(Name, function)                                                \
  struct Name {                                                                                   \
    ONNXTRAIN_HOST_DEVICE static inline float Value(float x, math::ActivationScalars<float>) {    \
      return __builtin_##function##f(x);                                                          \
    }                                                                                             \
    ONNXTRAIN_HOST_DEVICE static inline double Value(double x, math::ActivationScalars<double>) { \
      return __builtin_##function(x);                                                             \
    }                                                                                             \
  };
ONNXTRAIN_LIBRARY_FUNCTION(Floor, floor)
ONNXTRAIN_LIBRARY_FUNCTION(Ceil, ceil)
ONNXTRAIN_LIBRARY_FUNCTION(Round, rint)  // halves to even
ONNXTRAIN_LIBRARY_FUNCTION(Sin, sin)
ONNXTRAIN_LIBRARY_FUNCTION(Cos, cos)
ONNXTRAIN_LIBRARY_FUNCTION(Tan, tan)
ONNXTRAIN_LIBRARY_FUNCTION(Asin, asin)
ONNXTRAIN_LIBRARY_FUNCTION(Acos, acos)
ONNXTRAIN_LIBRARY_FUNCTION(Atan, atan)
ONNXTRAIN_LIBRARY_FUNCTION(Sinh, sinh)
ONNXTRAIN_LIBRARY_FUNCTION(Cosh, cosh)
ONNXTRAIN_LIBRARY_FUNCTION(Asinh, asinh)
ONNXTRAIN_LIBRARY_FUNCTION(Acosh, acosh)
ONNXTRAIN_LIBRARY_FUNCTION(Atanh, atanh)

struct ExpFormula {
  ONNXTRAIN_FORMULA Value(T x, math::ActivationScalars<T>) { return math::Exp(x); }
};
struct LogFormula {
  ONNXTRAIN_FORMULA Value(T x, math::ActivationScalars<T>) { return math::Log(x); }
};
struct SqrtFormula {
  ONNXTRAIN_FORMULA Value(T x, math::ActivationScalars<T>) { return math::Sqrt(x); }
};
struct Reciprocal {
  ONNXTRAIN_FORMULA Value(T x, math::ActivationScalars<T>) { return T(1) / x; }
};
struct Neg {
  ONNXTRAIN_FORMULA Value(T x, math::ActivationScalars<T>) { return -x; }
};
struct AbsFormula {
  ONNXTRAIN_FORMULA Value(T x, math::ActivationScalars<T>) { return math::Abs(x); }
};
struct Sign {
  ONNXTRAIN_FORMULA Value(T x, math::ActivationScalars<T>) { return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x); }
};

template <typename Formula, typename T>
void Value(math::ActivationScalars<T> scalars, const T* x, T* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Formula::Value(x[i], scalars);
}

template <typename Formula, typename T>
void Gradient(math::ActivationScalars<T> scalars, const T* p, const T* dy, T* dx, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dx[i] = Formula::Gradient(p[i], dy[i], scalars);
}

template <typename Formula, typename T>
UnaryLoops<T> Both() {
  return {&Value<Formula, T>, &Gradient<Formula, T>};
}
template <typename Formula, typename T>
UnaryLoops<T> ValueOnly() {
  return {&Value<Formula, T>, nullptr};
}

template <typename T>
UnaryLoops<T> Find(UnaryFunction function) {
  switch (function) {
    case UnaryFunction::kRelu:
      return Both<math::Relu, T>();
    case UnaryFunction::kSigmoid:
      return Both<math::SigmoidFormula, T>();
    case UnaryFunction::kTanh:
      return Both<math::TanhFormula, T>();
    case UnaryFunction::kErf:
      return Both<math::ErfFormula, T>();
    case UnaryFunction::kGeluErf:
      return Both<math::GeluErf, T>();
    case UnaryFunction::kGeluTanh:
      return Both<math::GeluTanh, T>();
    case UnaryFunction::kLeakyRelu:
      return Both<math::LeakyRelu, T>();
    case UnaryFunction::kElu:
      return Both<math::Elu, T>();
    case UnaryFunction::kSelu:
      return Both<math::Selu, T>();
    case UnaryFunction::kCelu:
      return Both<math::Celu, T>();
    case UnaryFunction::kHardSigmoid:
      return Both<math::HardSigmoid, T>();
    case UnaryFunction::kHardSwish:
      return Both<math::HardSwish, T>();
    case UnaryFunction::kSoftplus:
      return Both<math::SoftplusFormula, T>();
    case UnaryFunction::kSoftsign:
      return Both<math::Softsign, T>();
    case UnaryFunction::kMish:
      return Both<math::Mish, T>();
    case UnaryFunction::kSwish:
      return Both<math::Swish, T>();
    case UnaryFunction::kThresholdedRelu:
      return Both<math::ThresholdedRelu, T>();
    case UnaryFunction::kExp:
      return ValueOnly<ExpFormula, T>();
    case UnaryFunction::kLog:
      return ValueOnly<LogFormula, T>();
    case UnaryFunction::kSqrt:
      return ValueOnly<SqrtFormula, T>();
    case UnaryFunction::kReciprocal:
      return ValueOnly<Reciprocal, T>();
    case UnaryFunction::kNeg:
      return ValueOnly<Neg, T>();
    case UnaryFunction::kAbs:
      return ValueOnly<AbsFormula, T>();
    case UnaryFunction::kSign:
      return ValueOnly<Sign, T>();
    case UnaryFunction::kFloor:
      return ValueOnly<Floor, T>();
    case UnaryFunction::kCeil:
      return ValueOnly<Ceil, T>();
    case UnaryFunction::kRound:
      return ValueOnly<Round, T>();
    case UnaryFunction::kSin:
      return ValueOnly<Sin, T>();
    case UnaryFunction::kCos:
      return ValueOnly<Cos, T>();
    case UnaryFunction::kTan:
      return ValueOnly<Tan, T>();
    case UnaryFunction::kAsin:
      return ValueOnly<Asin, T>();
    case UnaryFunction::kAcos:
      return ValueOnly<Acos, T>();
    case UnaryFunction::kAtan:
      return ValueOnly<Atan, T>();
    case UnaryFunction::kSinh:
      return ValueOnly<Sinh, T>();
    case UnaryFunction::kCosh:
      return ValueOnly<Cosh, T>();
    case UnaryFunction::kAsinh:
      return ValueOnly<Asinh, T>();
    case UnaryFunction::kAcosh:
      return ValueOnly<Acosh, T>();
    case UnaryFunction::kAtanh:
      return ValueOnly<Atanh, T>();
  }
  return {};
}

template <typename T>
inline void ClipLoop(T lower, T upper, const T* x, T* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T raised = x[i] < lower ? lower : x[i];
    y[i] = raised > upper ? upper : raised;
  }
}

template <typename T>
inline void ClipGradLoop(T lower, T upper, const T* x, const T* dy, T* dx, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dx[i] = (x[i] <= lower) | (x[i] >= upper) ? T(0) : dy[i];
}

}  // namespace

UnaryLoops<float> FloatUnaryLoops(UnaryFunction function) { return Find<float>(function); }
UnaryLoops<double> DoubleUnaryLoops(UnaryFunction function) { return Find<double>(function); }
void ClipFloat(float lower, float upper, const float* x, float* y, int64_t n) { ClipLoop(lower, upper, x, y, n); }
void ClipDouble(double lower, double upper, const double* x, double* y, int64_t n) { ClipLoop(lower, upper, x, y, n); }
void ClipGradFloat(float lower, float upper, const float* x, const float* dy, float* dx, int64_t n) {
  ClipGradLoop(lower, upper, x, dy, dx, n);
}
void ClipGradDouble(double lower, double upper, const double* x, const double* dy, double* dx, int64_t n) {
  ClipGradLoop(lower, upper, x, dy, dx, n);
}

}  // namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE
