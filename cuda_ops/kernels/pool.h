// SPDX-License-Identifier: Apache-2.0
// Launchers of max pooling over planes. The first largest element of a window counts, or the last NaN.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_POOL_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_POOL_H_

#include <cuda_runtime_api.h>

#include "cuda_ops/kernels/window.h"
#include "graph/dtype.h"

namespace onnxtrain {

struct PoolArguments {
  const void* x = nullptr;
  const void* dy = nullptr;    // gradient
  void* result = nullptr;      // y; gradient: dx
  int64_t* indices = nullptr;  // forward: places in x, counted over all planes; may be null
  int64_t planes = 0;
  DeviceWindow window;
  DType dtype = DType::kFloat;  // float, bfloat16, float16
};
cudaError_t LaunchMaxPool(const PoolArguments& arguments, cudaStream_t stream);
// Every pixel asks the windows over it whether it is their largest: no atomics.
cudaError_t LaunchMaxPoolGradient(const PoolArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_POOL_H_
