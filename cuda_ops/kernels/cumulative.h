// SPDX-License-Identifier: Apache-2.0
// Launcher of cumulative sums along the middle axis of [outer, length, inner]. Sums of floats are taken in double,
// those of integers wrap around; always in the same order.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_CUMULATIVE_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_CUMULATIVE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

struct CumulativeSumArguments {
  const void* x = nullptr;
  void* y = nullptr;  // may be x
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
  bool exclusive = false;       // an element is not part of its own sum
  bool reverse = false;         // from the end of the axis
  DType dtype = DType::kFloat;  // float, bfloat16, float16, double, int32, int64
};
cudaError_t LaunchCumulativeSum(const CumulativeSumArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_CUMULATIVE_H_
