// SPDX-License-Identifier: Apache-2.0
// Which element types the device code serves.
#ifndef ONNXTRAIN_CUDA_OPS_OPS_ELEMENT_TYPES_H_
#define ONNXTRAIN_CUDA_OPS_OPS_ELEMENT_TYPES_H_

#include <cstddef>

#include "graph/dtype.h"

namespace onnxtrain {

// Computed in float and rounded once.
inline bool IsDeviceFloat(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kBfloat16 || dtype == DType::kFloat16;
}

inline bool IsDeviceInteger(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

// Kernels that only move bits.
inline bool IsMovable(DType dtype) {
  const size_t bytes = SizeOf(dtype);
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_OPS_ELEMENT_TYPES_H_
