// SPDX-License-Identifier: Apache-2.0
// Launchers of functions of one number: activations, their gradients, and the functions of math.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_UNARY_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_UNARY_H_

#include <cuda_runtime_api.h>

#include "graph/dtype.h"
#include "runtime/math/unary_function.h"

namespace onnxtrain {

struct UnaryArguments {
  const void* x = nullptr;   // for gradients what the formula reads: x or y (runtime/math/activation.h)
  const void* dy = nullptr;  // gradients only
  void* y = nullptr;         // may be x or dy
  int64_t count = 0;
  DType dtype = DType::kFloat;  // float, bfloat16 or float16; computed in float
  float alpha = 0;
  float beta = 0;
};

// cudaErrorInvalidValue for a function that is not of the family.
cudaError_t LaunchActivation(UnaryFunction function, const UnaryArguments& arguments, cudaStream_t stream);
cudaError_t LaunchActivationGradient(UnaryFunction function, const UnaryArguments& arguments, cudaStream_t stream);
cudaError_t LaunchMathFunction(UnaryFunction function, const UnaryArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_UNARY_H_
