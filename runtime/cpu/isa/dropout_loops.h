// SPDX-License-Identifier: Apache-2.0
#ifndef ONNXTRAIN_RUNTIME_CPU_ISA_DROPOUT_LOOPS_H_
#define ONNXTRAIN_RUNTIME_CPU_ISA_DROPOUT_LOOPS_H_

#include <cstdint>

#include "runtime/cpu/isa_level.h"

namespace onnxtrain {

// Elements are drawn in whole blocks of this many; ranges of DropoutRun begin at a multiple of it.
inline constexpr int64_t kDropoutBlock = 64;

// Where a draw comes from (runtime/math/philox.h), and what it decides: an element is kept if its word is at least
// `threshold`, which is ratio * 2^32.
struct DropoutDraw {
  uint64_t seed;
  uint32_t draw_id;
  uint32_t attempt;
  uint32_t slice;
  uint32_t threshold;
};

// For T = float and double: y = x * scale where kept, else 0; mask (may be null) says which. y may be x.
//   MaskRun: y = x * scale where mask, else 0.
// clang-format off
#define ONNXTRAIN_DROPOUT_LOOPS(T)                                                                               \
  void DropoutRun(const DropoutDraw& draw, const T* x, T scale, int64_t begin, int64_t end, T* y, uint8_t* mask); \
  void MaskRun(const T* x, const uint8_t* mask, T scale, int64_t begin, int64_t end, T* y);
ONNXTRAIN_FOR_EACH_ISA(ONNXTRAIN_DROPOUT_LOOPS(float) ONNXTRAIN_DROPOUT_LOOPS(double))
#undef ONNXTRAIN_DROPOUT_LOOPS
// clang-format on

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_ISA_DROPOUT_LOOPS_H_
