// SPDX-License-Identifier: Apache-2.0
// Reductions of rows and of columns, one thread. The order of additions depends on lengths alone, so that equal calls
// give equal bits on one instruction set. Single precision is summed in short runs that are added up in double.
#ifndef ONNXTRAIN_RUNTIME_CPU_ISA_REDUCTION_LOOPS_H_
#define ONNXTRAIN_RUNTIME_CPU_ISA_REDUCTION_LOOPS_H_

#include <cstdint>

#include "runtime/cpu/isa_level.h"

namespace onnxtrain {

enum class Accumulation : uint8_t { kSum, kSumSquare, kSumAbs, kMax, kMin };

template <typename T>
struct ReductionLoops {
  // Of x[0 .. n). Max and Min of nothing are the infinities that change no other value; NaN stays.
  double (*row)(const T* x, int64_t n);
  // sums[c] = combination of sums[c] and x[r * stride + c] over r < rows, for c < columns.
  void (*columns)(const T* x, int64_t stride, int64_t rows, int64_t columns, double* sums);
};

ONNXTRAIN_FOR_EACH_ISA(ReductionLoops<float> FloatReductionLoops(Accumulation accumulation);
                       ReductionLoops<double> DoubleReductionLoops(Accumulation accumulation);)

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_ISA_REDUCTION_LOOPS_H_
