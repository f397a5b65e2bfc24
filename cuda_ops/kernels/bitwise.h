// SPDX-License-Identifier: Apache-2.0
// Launchers of functions of the bits of integers, with broadcasting.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_BITWISE_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_BITWISE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda_ops/kernels/strided_loop.h"

namespace onnxtrain {

// Shifts fill with zeros, and by the width of the type or more give zero.
enum class BitwiseFunction : uint8_t { kAnd, kOr, kXor, kShiftLeft, kShiftRight };

struct BitwiseArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;         // may be an operand that is not broadcast
  StridedLoop<3> loop;       // a, b, y
  size_t element_bytes = 4;  // 1, 2, 4 or 8
};
cudaError_t LaunchBitwise(BitwiseFunction function, const BitwiseArguments& arguments, cudaStream_t stream);

cudaError_t LaunchBitwiseNot(const void* x, void* y, int64_t count, size_t element_bytes, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_BITWISE_H_
