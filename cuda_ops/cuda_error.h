// SPDX-License-Identifier: Apache-2.0
// CUDA's error codes as Status: "cudaMalloc: out of memory (cudaErrorMemoryAllocation)".
#ifndef ONNXTRAIN_CUDA_OPS_CUDA_ERROR_H_
#define ONNXTRAIN_CUDA_OPS_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

#include <string_view>

#include "graph/status.h"

namespace onnxtrain {

// ResourceExhausted for want of memory, else Internal. `call` names the function, and what it was for.
Status CudaError(cudaError_t error, std::string_view call);

// Returns from the enclosing function, which yields Status or StatusOr, when `call` does not succeed.
#define RETURN_IF_CUDA_ERROR(call)                                                                       \
  do {                                                                                                   \
    const cudaError_t cuda_error_ = (call);                                                              \
    if (cuda_error_ != cudaSuccess) return ::onnxtrain::CudaError(cuda_error_, std::string_view(#call)); \
  } while (false)

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CUDA_ERROR_H_
