// SPDX-License-Identifier: Apache-2.0
// Activations and their gradients for one element, shared by all backends. Formulas: ONNX operator schemas; kinks as in
// PyTorch (Relu 0 at 0; hard saturations pass the gradient strictly inside their bounds).
//
// Value(x) is the activation. Gradient(p, dy) is dL/dx, where p is x, or y for Relu, Sigmoid and Tanh.
#ifndef ONNXTRAIN_RUNTIME_MATH_ACTIVATION_H_
#define ONNXTRAIN_RUNTIME_MATH_ACTIVATION_H_

#include "runtime/math/functions.h"

namespace onnxtrain::math {

// Attributes in the order of the schema: alpha, then beta or gamma.
template <typename T>
struct ActivationScalars {
  T alpha;
  T beta;
};

#define ONNXTRAIN_FORMULA \
  template <typename T>   \
  ONNXTRAIN_HOST_DEVICE static inline T

struct Relu {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T>) { return x < T(0) ? T(0) : x; }
  ONNXTRAIN_FORMULA Gradient(T y, T dy, ActivationScalars<T>) { return y <= T(0) ? T(0) : dy; }
};

struct SigmoidFormula {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T>) { return Sigmoid(x); }
  ONNXTRAIN_FORMULA Gradient(T y, T dy, ActivationScalars<T>) { return dy * (y * (T(1) - y)); }
};

struct TanhFormula {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T>) { return Tanh(x); }
  ONNXTRAIN_FORMULA Gradient(T y, T dy, ActivationScalars<T>) { return dy * (T(1) - y * y); }
};

struct ErfFormula {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T>) { return Erf(x); }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T>) {
    return dy * (T(1.1283791670955125739) * Exp(-x * x));  // 2 / sqrt(pi)
  }
};

// x Phi(x) with the normal distribution function Phi.
struct GeluErf {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T>) { return x * NormalOf(x).distribution; }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T>) {
    const Normal<T> normal = NormalOf(x);
    return dy * (normal.distribution + x * (T(0.39894228040143267794) * normal.exponential));
  }
};

// x (1 + tanh u) / 2 with u = sqrt(2/pi) (x + 0.044715 x^3); (1 + tanh u) / 2 = sigmoid(2u), which keeps its precision
// in the tail.
struct GeluTanh {
  ONNXTRAIN_FORMULA Gate(T x) { return Sigmoid(T(1.59576912160573071176) * (x + T(0.044715) * (x * x * x))); }
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T>) { return x * Gate(x); }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T>) {
    const T gate = Gate(x);
    const T slope = T(1.59576912160573071176) * (T(1) + T(3 * 0.044715) * (x * x));
    return dy * (gate + x * (gate * (T(1) - gate) * slope));
  }
};

struct LeakyRelu {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T> s) { return x < T(0) ? s.alpha * x : x; }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T> s) { return x > T(0) ? dy : s.alpha * dy; }
};

struct Elu {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T> s) {
    const T below = s.alpha * Expm1(x);
    return x > T(0) ? x : below;
  }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T> s) {
    const T below = dy * (s.alpha * Exp(x));
    return x > T(0) ? dy : below;
  }
};

// beta is ONNX's gamma.
struct Selu {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T> s) { return s.beta * Elu::Value(x, s); }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T> s) { return s.beta * Elu::Gradient(x, dy, s); }
};

struct Celu {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T> s) {
    const T below = s.alpha * Expm1(x / s.alpha);
    return x > T(0) ? x : below;
  }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T> s) {
    const T below = dy * Exp(x / s.alpha);
    return x > T(0) ? dy : below;
  }
};

// clip(alpha x + beta, 0, 1)
struct HardSigmoid {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T> s) { return Max(T(0), Min(T(1), s.alpha * x + s.beta)); }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T> s) {
    const T line = s.alpha * x + s.beta;
    return line <= T(0) || line >= T(1) ? T(0) : dy * s.alpha;
  }
};

// x clip(x / 6 + 1/2, 0, 1)
struct HardSwish {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T>) { return x * Max(T(0), Min(T(1), x * T(1.0 / 6.0) + T(0.5))); }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T>) {
    const T inside = dy * (x * T(1.0 / 3.0) + T(0.5));
    return x <= T(-3) ? T(0) : (x >= T(3) ? dy : inside);
  }
};

struct SoftplusFormula {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T>) { return Softplus(x); }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T>) { return dy * Sigmoid(x); }
};

struct Softsign {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T>) { return x / (T(1) + Abs(x)); }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T>) {
    const T d = T(1) + Abs(x);
    return dy / (d * d);
  }
};

// x tanh(log(1 + e^x)) = x n / (n + 2) with n = e (e + 2), e = e^x.
struct Mish {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T>) {
    const T e = Exp(Min(x, T(20)));
    const T n = e * (e + T(2));
    return x * (n / (n + T(2)));
  }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T>) {
    const T e = Exp(Min(x, T(20)));
    const T n = e * (e + T(2));
    const T d = T(1) / (n + T(2));
    return dy * (n * d + x * (T(4) * (e * d) * ((e + T(1)) * d)));
  }
};

// x sigmoid(alpha x)
struct Swish {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T> s) { return x * Sigmoid(s.alpha * x); }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T> s) {
    const T gate = Sigmoid(s.alpha * x);
    return dy * (gate + (s.alpha * x) * (gate * (T(1) - gate)));
  }
};

struct ThresholdedRelu {
  ONNXTRAIN_FORMULA Value(T x, ActivationScalars<T> s) { return x > s.alpha ? x : T(0); }
  ONNXTRAIN_FORMULA Gradient(T x, T dy, ActivationScalars<T> s) { return x > s.alpha ? dy : T(0); }
};

#undef ONNXTRAIN_FORMULA

}  // namespace onnxtrain::math

#endif  // ONNXTRAIN_RUNTIME_MATH_ACTIVATION_H_
