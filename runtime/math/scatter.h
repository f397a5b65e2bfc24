// SPDX-License-Identifier: Apache-2.0
// How ScatterElements and ScatterND join an update with what is there (ONNX, attribute `reduction`). Integers wrap
// around; for max and min a NaN among the updates changes nothing.
#ifndef ONNXTRAIN_RUNTIME_MATH_SCATTER_H_
#define ONNXTRAIN_RUNTIME_MATH_SCATTER_H_

#include <cstdint>
#include <type_traits>

#include "runtime/math/host_device.h"

namespace onnxtrain {

enum class ScatterReduction : uint8_t { kNone, kAdd, kMul, kMax, kMin };

namespace math {

// Integers of 4 and 8 bytes are joined unsigned, where overflow is defined; smaller ones are promoted anyway.
template <typename T>
using ScatterTerm = typename std::conditional_t<std::is_integral_v<T> && sizeof(T) >= 4, std::make_unsigned<T>,
                                                std::type_identity<T>>::type;

template <typename T>
ONNXTRAIN_HOST_DEVICE inline T Scattered(ScatterReduction reduction, T target, T update) {
  using Term = ScatterTerm<T>;
  switch (reduction) {
    case ScatterReduction::kAdd:
      return static_cast<T>(static_cast<Term>(target) + static_cast<Term>(update));
    case ScatterReduction::kMul:
      return static_cast<T>(static_cast<Term>(target) * static_cast<Term>(update));
    case ScatterReduction::kMax:
      return update > target ? update : target;
    case ScatterReduction::kMin:
      return update < target ? update : target;
    default:
      return update;
  }
}

}  // namespace math
}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_MATH_SCATTER_H_
