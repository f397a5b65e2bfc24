// SPDX-License-Identifier: Apache-2.0
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_CAST_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_CAST_H_

#include <cuda_runtime_api.h>

#include "graph/dtype.h"

namespace onnxtrain {

// float, bfloat16, float16, double, int32, int64, uint8, bool. To bool: whether it is not 0; to integers: towards zero.
bool CanCast(DType dtype);
cudaError_t LaunchCast(const void* x, DType from, void* y, DType to, int64_t count, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_CAST_H_
