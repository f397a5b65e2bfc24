// SPDX-License-Identifier: Apache-2.0
// Functions of two numbers, and selection, over n neighbours of a row. A step of 0 repeats one element, 1 walks along.
// y may be an operand of step 1, but may not overlap one otherwise. One thread.
#ifndef ONNXTRAIN_RUNTIME_CPU_ISA_BINARY_LOOPS_H_
#define ONNXTRAIN_RUNTIME_CPU_ISA_BINARY_LOOPS_H_

#include <cstdint>

#include "runtime/cpu/isa_level.h"

namespace onnxtrain {

enum class BinaryFunction : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,  // NaN where either is
  kPow,
  kFmod,   // the sign of a
  kPRelu,  // a where a > 0, else b * a
};

template <typename T>
using BinaryLoop = void (*)(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n);

// Selection moves bits, so it goes by the size of an element.
template <typename Bits>
using SelectLoop = void (*)(const uint8_t* condition, int64_t condition_step, const Bits* a, int64_t a_step,
                            const Bits* b, int64_t b_step, Bits* y, int64_t n);

ONNXTRAIN_FOR_EACH_ISA(BinaryLoop<float> FloatBinaryLoop(BinaryFunction function);
                       BinaryLoop<double> DoubleBinaryLoop(BinaryFunction function);
                       void Select1(const uint8_t* condition, int64_t condition_step, const uint8_t* a, int64_t a_step,
                                    const uint8_t* b, int64_t b_step, uint8_t* y, int64_t n);
                       void Select2(const uint8_t* condition, int64_t condition_step, const uint16_t* a, int64_t a_step,
                                    const uint16_t* b, int64_t b_step, uint16_t* y, int64_t n);
                       void Select4(const uint8_t* condition, int64_t condition_step, const uint32_t* a, int64_t a_step,
                                    const uint32_t* b, int64_t b_step, uint32_t* y, int64_t n);
                       void Select8(const uint8_t* condition, int64_t condition_step, const uint64_t* a, int64_t a_step,
                                    const uint64_t* b, int64_t b_step, uint64_t* y, int64_t n);)

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_ISA_BINARY_LOOPS_H_
