// SPDX-License-Identifier: Apache-2.0
// Launchers of pooling over planes. The first largest element of a window counts, or the last NaN; a mean is the sum of
// what lies inside of the plane over the number of elements that count.
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

// Which positions of each axis count towards a mean.
struct CountedPositions {
  bool padding = false;  // those before the first element, too
  int32_t depth = 1;     // those before this one
  int32_t height = 1;
  int32_t width = 1;
};
struct AveragePoolArguments {
  const void* from = nullptr;  // x; gradient: dy
  void* to = nullptr;          // y; gradient: dx
  int64_t planes = 0;
  DeviceWindow window;
  CountedPositions counted;
  DType dtype = DType::kFloat;  // float, bfloat16, float16
};
cudaError_t LaunchAveragePool(const AveragePoolArguments& arguments, cudaStream_t stream);
// Every pixel takes its share of the windows over it.
cudaError_t LaunchAveragePoolGradient(const AveragePoolArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_POOL_H_
