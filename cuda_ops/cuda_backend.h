// SPDX-License-Identifier: Apache-2.0
// The GPUs of a process's ranks, rank r on GPU r, joined by NCCL.
#ifndef ONNXTRAIN_CUDA_OPS_CUDA_BACKEND_H_
#define ONNXTRAIN_CUDA_OPS_CUDA_BACKEND_H_

#include <memory>

#include "runtime/backend.h"

namespace onnxtrain {

// Usage when there are fewer GPUs than ranks.
StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(const BackendOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CUDA_BACKEND_H_
