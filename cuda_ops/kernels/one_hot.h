// SPDX-License-Identifier: Apache-2.0
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_ONE_HOT_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_ONE_HOT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

struct OneHotArguments {
  const void* indices = nullptr;  // [outer, inner]; negative ones count from the end
  const void* values = nullptr;   // off, on
  void* y = nullptr;              // [outer, depth, inner]: on at the index, off elsewhere and where it is out of range
  int64_t outer = 1;
  int64_t depth = 1;
  int64_t inner = 1;
  DType index_dtype = DType::kInt64;  // int32, int64, float, double, uint8
};
// Values of 1, 2, 4 or 8 bytes.
cudaError_t LaunchOneHot(const OneHotArguments& arguments, size_t element_bytes, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_ONE_HOT_H_
