// SPDX-License-Identifier: Apache-2.0
// Launchers between images and columns: a convolution is a product with columns [channels * taps, positions] of each
// sample.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_CONV_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_CONV_H_

#include <cuda_runtime_api.h>

#include "cuda_ops/kernels/window.h"
#include "graph/dtype.h"

namespace onnxtrain {

struct ColumnArguments {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t samples = 0;
  int64_t channels = 0;
  DeviceWindow window;
  DType from_dtype = DType::kFloat;  // float, bfloat16, float16
  DType to_dtype = DType::kFloat;
};
// Images to columns; zeros where the window hangs over.
cudaError_t LaunchToColumns(const ColumnArguments& arguments, cudaStream_t stream);
// Columns to images: every pixel sums its places in float, in a fixed order.
cudaError_t LaunchFromColumns(const ColumnArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_CONV_H_
