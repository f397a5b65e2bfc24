// SPDX-License-Identifier: Apache-2.0
// Optimizer updates over [begin, end) of flat arrays; outputs may be the inputs. One thread.
#ifndef ONNXTRAIN_RUNTIME_CPU_ISA_OPTIMIZER_LOOPS_H_
#define ONNXTRAIN_RUNTIME_CPU_ISA_OPTIMIZER_LOOPS_H_

#include <cstdint>

#include "runtime/cpu/isa_level.h"
#include "runtime/math/optimizer.h"

namespace onnxtrain {

// Arrays of one optimizer node; unused ones are null.
template <typename T>
struct OptimizerArrays {
  const T* weight;
  const T* gradient;
  const T* moment1;
  const T* moment2;
  T* weight_out;
  T* moment1_out;
  T* moment2_out;
};

// For T = float and double:
//   Adam, Adagrad, Lion, Sgd: the update of runtime/math/optimizer.h; Sgd without momentum has null moments.
//   SumOfSquares: accumulated in double in 8 interleaved lanes that are added in order.
// clang-format off
#define ONNXTRAIN_OPTIMIZER_LOOPS(T)                                                                          \
  void Adam(const math::AdamScalars<T>& scalars, const OptimizerArrays<T>& arrays, int64_t begin, int64_t end); \
  void Sgd(const math::SgdScalars<T>& scalars, bool nesterov, const OptimizerArrays<T>& arrays, int64_t begin,  \
           int64_t end);                                                                                      \
  void Adagrad(const math::AdagradScalars<T>& scalars, const OptimizerArrays<T>& arrays, int64_t begin,         \
               int64_t end);                                                                                  \
  void Lion(const math::LionScalars<T>& scalars, const OptimizerArrays<T>& arrays, int64_t begin, int64_t end); \
  double SumOfSquares(const T* values, int64_t count);
ONNXTRAIN_FOR_EACH_ISA(ONNXTRAIN_OPTIMIZER_LOOPS(float) ONNXTRAIN_OPTIMIZER_LOOPS(double))
#undef ONNXTRAIN_OPTIMIZER_LOOPS
// clang-format on

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_ISA_OPTIMIZER_LOOPS_H_
