// SPDX-License-Identifier: Apache-2.0
// Update rules of the optimizers for one element, shared by all backends. Formulas and their order of operations are those
// of PyTorch 2 (torch.optim.SGD, Adam, AdamW, Adagrad) and of the Lion paper (arXiv 2302.06675, algorithm 2).
//
// T is float or double. Scalars are prepared once per launch in double (OptimizerScalars) and rounded once.
#ifndef ONNXTRAIN_RUNTIME_MATH_OPTIMIZER_H_
#define ONNXTRAIN_RUNTIME_MATH_OPTIMIZER_H_

#include <cmath>
#include <cstdint>

#include "runtime/math/host_device.h"

namespace onnxtrain::math {

template <typename T>
struct AdamScalars {
  T grad_scale;         // 1 / global weight, times the clip factor
  T decay;              // AdamW: 1 - lr * weight_decay; Adam: 1
  T l2;                 // Adam: weight_decay; AdamW: 0
  T beta1, one_minus_beta1, beta2, one_minus_beta2;
  T step_size;          // lr / (1 - beta1^t)
  T inverse_bias2_sqrt; // 1 / sqrt(1 - beta2^t)
  T epsilon;
};

// `step` counts the updates done before this one; t = step + 1.
template <typename T>
ONNXTRAIN_HOST_DEVICE inline AdamScalars<T> MakeAdamScalars(bool decoupled, double lr, double weight_decay, double beta1, double beta2,
                               double epsilon, double grad_scale, int64_t step) {
  const double t = static_cast<double>(step) + 1.0;
  return {static_cast<T>(grad_scale),
          static_cast<T>(decoupled ? 1.0 - lr * weight_decay : 1.0),
          static_cast<T>(decoupled ? 0.0 : weight_decay),
          static_cast<T>(beta1),
          static_cast<T>(1.0 - beta1),
          static_cast<T>(beta2),
          static_cast<T>(1.0 - beta2),
          static_cast<T>(lr / (1.0 - std::pow(beta1, t))),
          static_cast<T>(1.0 / std::sqrt(1.0 - std::pow(beta2, t))),
          static_cast<T>(epsilon)};
}

template <typename T>
ONNXTRAIN_HOST_DEVICE inline void AdamElement(const AdamScalars<T>& s, T w, T grad, T m, T v, T* w_out, T* m_out,
                                              T* v_out) {
  const T g = grad * s.grad_scale + s.l2 * w;
  const T m_new = m + (g - m) * s.one_minus_beta1;
  const T v_new = s.beta2 * v + s.one_minus_beta2 * g * g;
  const T denominator = std::sqrt(v_new) * s.inverse_bias2_sqrt + s.epsilon;
  *m_out = m_new;
  *v_out = v_new;
  *w_out = w * s.decay - s.step_size * (m_new / denominator);
}

template <typename T>
struct SgdScalars {
  T grad_scale, weight_decay, momentum, lr;
};

// Without momentum: pass momentum 0 and ignore m_out.
template <typename T, bool kNesterov>
ONNXTRAIN_HOST_DEVICE inline void SgdElement(const SgdScalars<T>& s, T w, T grad, T m, T* w_out, T* m_out) {
  const T g = grad * s.grad_scale + s.weight_decay * w;
  const T m_new = s.momentum * m + g;
  *m_out = m_new;
  *w_out = w - s.lr * (kNesterov ? g + s.momentum * m_new : m_new);
}

template <typename T>
struct AdagradScalars {
  T grad_scale, weight_decay, lr, epsilon;
};

template <typename T>
ONNXTRAIN_HOST_DEVICE inline void AdagradElement(const AdagradScalars<T>& s, T w, T grad, T sum, T* w_out, T* sum_out) {
  const T g = grad * s.grad_scale + s.weight_decay * w;
  const T sum_new = sum + g * g;
  *sum_out = sum_new;
  *w_out = w - s.lr * (g / (std::sqrt(sum_new) + s.epsilon));
}

template <typename T>
struct LionScalars {
  T grad_scale, decay, lr, beta1, one_minus_beta1, beta2, one_minus_beta2;
};

template <typename T>
ONNXTRAIN_HOST_DEVICE inline void LionElement(const LionScalars<T>& s, T w, T grad, T m, T* w_out, T* m_out) {
  const T g = grad * s.grad_scale;
  const T c = s.beta1 * m + s.one_minus_beta1 * g;
  const T sign = static_cast<T>(c > T(0)) - static_cast<T>(c < T(0));
  *m_out = s.beta2 * m + s.one_minus_beta2 * g;
  *w_out = w * s.decay - s.lr * sign;
}

}  // namespace onnxtrain::math

#endif  // ONNXTRAIN_RUNTIME_MATH_OPTIMIZER_H_
