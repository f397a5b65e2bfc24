// SPDX-License-Identifier: Apache-2.0
#ifndef ONNXTRAIN_RUNTIME_CPU_ISA_HALF_LOOPS_H_
#define ONNXTRAIN_RUNTIME_CPU_ISA_HALF_LOOPS_H_

#include <cstdint>

#include "runtime/cpu/isa_level.h"

namespace onnxtrain {

// bfloat16 to float, exact, and back, to nearest even; a NaN stays one. `from` and `to` do not overlap.
// clang-format off
ONNXTRAIN_FOR_EACH_ISA(
  void WidenBfloat16(const uint16_t* from, float* to, int64_t count);
  void NarrowToBfloat16(const float* from, uint16_t* to, int64_t count);)
// clang-format on

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_ISA_HALF_LOOPS_H_
