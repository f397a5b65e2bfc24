// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/isa/half_loops.h"

#include <bit>

namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE {

void WidenBfloat16(const uint16_t* from, float* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(static_cast<uint32_t>(from[i]) << 16);
}

void NarrowToBfloat16(const float* from, uint16_t* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
    to[i] = static_cast<uint16_t>(nan ? (bits >> 16) | 0x40u : rounded);
  }
}

}  // namespace onnxtrain::ONNXTRAIN_ISA_NAMESPACE
