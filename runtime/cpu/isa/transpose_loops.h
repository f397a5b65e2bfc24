// SPDX-License-Identifier: Apache-2.0
// Transposition of one matrix inside strided memory, by 8 x 8 (4 bytes) or 4 x 4 (8 bytes) blocks in registers.
#ifndef ONNXTRAIN_RUNTIME_CPU_ISA_TRANSPOSE_LOOPS_H_
#define ONNXTRAIN_RUNTIME_CPU_ISA_TRANSPOSE_LOOPS_H_

#include <cstdint>

#include "runtime/cpu/isa_level.h"

namespace onnxtrain {

// y[r * y_stride + c] = x[c * x_stride + r] for r < rows, c < columns. No overlap.
template <typename Bits>
using TransposeLoop = void (*)(const Bits* x, int64_t x_stride, Bits* y, int64_t y_stride, int64_t rows,
                               int64_t columns);

ONNXTRAIN_FOR_EACH_ISA(void Transpose4(const uint32_t* x, int64_t x_stride, uint32_t* y, int64_t y_stride, int64_t rows,
                                       int64_t columns);
                       void Transpose8(const uint64_t* x, int64_t x_stride, uint64_t* y, int64_t y_stride, int64_t rows,
                                       int64_t columns);)

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_ISA_TRANSPOSE_LOOPS_H_
