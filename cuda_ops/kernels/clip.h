// SPDX-License-Identifier: Apache-2.0
// Launchers of Clip, its gradient, and the test for NaN. Bounds are device memory, of the tensors' type; null: none.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_CLIP_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_CLIP_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

struct ClipArguments {
  const void* x = nullptr;
  const void* dy = nullptr;  // gradient: dx = dy strictly inside of the bounds, else 0
  const void* lower = nullptr;
  const void* upper = nullptr;
  void* y = nullptr;  // may be x or dy
  int64_t count = 0;
  DType dtype = DType::kFloat;  // float, bfloat16, float16
};
cudaError_t LaunchClip(const ClipArguments& arguments, cudaStream_t stream);
cudaError_t LaunchClipGradient(const ClipArguments& arguments, cudaStream_t stream);

cudaError_t LaunchIsNaN(const void* x, DType dtype, bool* y, int64_t count, cudaStream_t stream);
cudaError_t LaunchIsInfinite(const void* x, DType dtype, bool positive, bool negative, bool* y, int64_t count,
                             cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_CLIP_H_
