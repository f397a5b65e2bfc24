// SPDX-License-Identifier: Apache-2.0
// Launchers of functions of two tensors with broadcasting.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_ELEMENTWISE_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_ELEMENTWISE_H_

#include <cuda_runtime_api.h>

#include "cuda_ops/kernels/strided_loop.h"
#include "graph/dtype.h"

namespace onnxtrain {

enum class ArithmeticFunction : uint8_t { kAdd, kSub, kMul, kDiv, kMax, kMin, kPow, kPRelu };

struct BinaryArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;            // may be an operand that is not broadcast
  StridedLoop<3> loop;          // a, b, y
  DType dtype = DType::kFloat;  // of all three: float, bfloat16, float16 (computed in float), double, int32, int64
  float scale = 1;              // of the result; float, bfloat16, float16 only
};
// Integer kDiv and kPow are not served: cudaErrorInvalidValue.
cudaError_t LaunchArithmetic(ArithmeticFunction function, const BinaryArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_ELEMENTWISE_H_
