// SPDX-License-Identifier: Apache-2.0
// Launcher of interpolations along up to three axes at once, each a sparse matrix that comes as a table: Resize, and
// with the transposed matrices its gradient. No element is added to, so nothing is atomic.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_RESIZE_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_RESIZE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda_ops/kernels/divisor.h"
#include "graph/dtype.h"

namespace onnxtrain {

inline constexpr int kMostResizedAxes = 3;

// Position j of the result's axis is the sum of weight[t] times what lies offset[t] elements on in x, for t in begin[j]
// .. begin[j+1]-1. The tables are device memory.
struct ResizedAxis {
  const int64_t* begin = nullptr;
  const int64_t* offset = nullptr;
  const float* weight = nullptr;
  Divisor size;              // of the result's axis
  Divisor inner;             // kept elements behind it, up to the next resized axis
  int64_t inner_stride = 1;  // elements of x between them
};

struct ResizeArguments {
  const void* x = nullptr;
  void* y = nullptr;  // dense
  int64_t count = 0;  // elements of y
  int axes = 1;       // 1 .. kMostResizedAxes, outermost first
  ResizedAxis axis[kMostResizedAxes];
  int64_t outer_stride = 1;       // elements of x between those before the first axis
  DType dtype = DType::kFloat;    // of x: float, bfloat16, float16
  DType y_dtype = DType::kFloat;  // of y, the same choice
};
cudaError_t LaunchResize(const ResizeArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_RESIZE_H_
