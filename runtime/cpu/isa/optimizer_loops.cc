// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/isa/optimizer_loops.h"

namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE {
namespace {

template <typename T>
inline void AdamLoop(const math::AdamScalars<T>& scalars, const OptimizerArrays<T>& arrays, int64_t begin,
                     int64_t end) {
  const math::AdamScalars<T> s = scalars;
  const OptimizerArrays<T> a = arrays;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    T w, m, v;
    math::AdamElement(s, a.weight[i], a.gradient[i], a.moment1[i], a.moment2[i], &w, &m, &v);
    a.weight_out[i] = w;
    a.moment1_out[i] = m;
    a.moment2_out[i] = v;
  }
}

template <typename T, bool kNesterov, bool kMomentum>
inline void SgdLoop(const math::SgdScalars<T>& scalars, const OptimizerArrays<T>& arrays, int64_t begin,
                    int64_t end) {
  const math::SgdScalars<T> s = scalars;
  const OptimizerArrays<T> a = arrays;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    T w, m;
    math::SgdElement<T, kNesterov>(s, a.weight[i], a.gradient[i], kMomentum ? a.moment1[i] : T(0), &w, &m);
    a.weight_out[i] = w;
    if (kMomentum) a.moment1_out[i] = m;
  }
}

template <typename T>
inline void SgdAny(const math::SgdScalars<T>& s, bool nesterov, const OptimizerArrays<T>& a, int64_t begin,
                   int64_t end) {
  if (a.moment1 == nullptr) return SgdLoop<T, false, false>(s, a, begin, end);
  return nesterov ? SgdLoop<T, true, true>(s, a, begin, end) : SgdLoop<T, false, true>(s, a, begin, end);
}

template <typename T>
inline void AdagradLoop(const math::AdagradScalars<T>& scalars, const OptimizerArrays<T>& arrays, int64_t begin,
                        int64_t end) {
  const math::AdagradScalars<T> s = scalars;
  const OptimizerArrays<T> a = arrays;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    T w, sum;
    math::AdagradElement(s, a.weight[i], a.gradient[i], a.moment1[i], &w, &sum);
    a.weight_out[i] = w;
    a.moment1_out[i] = sum;
  }
}

template <typename T>
inline void LionLoop(const math::LionScalars<T>& scalars, const OptimizerArrays<T>& arrays, int64_t begin,
                     int64_t end) {
  const math::LionScalars<T> s = scalars;
  const OptimizerArrays<T> a = arrays;
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    T w, m;
    math::LionElement(s, a.weight[i], a.gradient[i], a.moment1[i], &w, &m);
    a.weight_out[i] = w;
    a.moment1_out[i] = m;
  }
}

template <typename T>
inline double SumOfSquaresLoop(const T* values, int64_t count) {
  constexpr int kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const double value = static_cast<double>(values[i + lane]);
      lanes[lane] += value * value;
    }
  }
  for (int lane = 0; i < count; ++i, ++lane) {
    const double value = static_cast<double>(values[i]);
    lanes[lane] += value * value;
  }
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

#define ONNXTRAIN_OPTIMIZER_LOOPS(T)                                                                      \
  void Adam(const math::AdamScalars<T>& s, const OptimizerArrays<T>& a, int64_t begin, int64_t end) {       \
    AdamLoop(s, a, begin, end);                                                                           \
  }                                                                                                       \
  void Sgd(const math::SgdScalars<T>& s, bool nesterov, const OptimizerArrays<T>& a, int64_t begin,         \
           int64_t end) {                                                                                 \
    SgdAny(s, nesterov, a, begin, end);                                                                   \
  }                                                                                                       \
  void Adagrad(const math::AdagradScalars<T>& s, const OptimizerArrays<T>& a, int64_t begin, int64_t end) { \
    AdagradLoop(s, a, begin, end);                                                                        \
  }                                                                                                       \
  void Lion(const math::LionScalars<T>& s, const OptimizerArrays<T>& a, int64_t begin, int64_t end) {       \
    LionLoop(s, a, begin, end);                                                                           \
  }                                                                                                       \
  double SumOfSquares(const T* values, int64_t count) { return SumOfSquaresLoop(values, count); }

ONNXTRAIN_OPTIMIZER_LOOPS(float)
ONNXTRAIN_OPTIMIZER_LOOPS(double)
#undef ONNXTRAIN_OPTIMIZER_LOOPS

}  // namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE
