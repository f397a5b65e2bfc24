// SPDX-License-Identifier: Apache-2.0
// A blocked matrix product on one thread for any strides: double precision, which oneDNN lacks, and builds that keep
// oneDNN's threads out. Every element of C is one chain of sums over the depth in order, whatever the tile it lies in.
#ifndef ONNXTRAIN_RUNTIME_CPU_ISA_GEMM_H_
#define ONNXTRAIN_RUNTIME_CPU_ISA_GEMM_H_

#include <cstdint>

#include "runtime/cpu/isa_level.h"

namespace onnxtrain {

// C = alpha A B, or C += alpha A B. Strides in elements; `pack` holds kGemmPackElements, 64-byte aligned.
template <typename T>
struct GemmArguments {
  int64_t rows, columns, depth;
  T alpha;
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_row, b_column;
  T* c;
  int64_t c_row, c_column;
  bool accumulate;
  T* pack;
};

inline constexpr int64_t kGemmRowBlock = 96;
inline constexpr int64_t kGemmColumnBlock = 256;
inline constexpr int64_t kGemmDepthBlock = 256;
inline constexpr int64_t kGemmPackElements = (kGemmRowBlock + kGemmColumnBlock) * kGemmDepthBlock;

ONNXTRAIN_FOR_EACH_ISA(void GemmFloat(const GemmArguments<float>& arguments);
                       void GemmDouble(const GemmArguments<double>& arguments);)

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_ISA_GEMM_H_
