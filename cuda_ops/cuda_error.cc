// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/cuda_error.h"

#include <string>

namespace onnxtrain {

Status CudaError(cudaError_t error, std::string_view call) {
  if (error == cudaSuccess) return OkStatus();
  // The function's name is enough: arguments are names of variables.
  const std::string function(call.substr(0, call.starts_with("cuda") ? call.find('(') : call.size()));
  std::string text = function + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
  if (error == cudaErrorMemoryAllocation) {
    return ResourceExhaustedError(text + "; use a smaller batch, or --memory-limit to see the plan's need");
  }
  return InternalError(std::move(text));
}

}  // namespace onnxtrain
