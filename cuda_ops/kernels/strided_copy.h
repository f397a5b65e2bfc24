// SPDX-License-Identifier: Apache-2.0
// Launcher of copies between strided views: Transpose, Slice, Concat, Split, Expand, Tile, Pad, BucketPack.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_STRIDED_COPY_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_STRIDED_COPY_H_

#include <cuda_runtime_api.h>

#include "cuda_ops/kernels/strided_loop.h"

namespace onnxtrain {

// `loop` walks from, to. Elements of 1, 2, 4 or 8 bytes.
cudaError_t LaunchStridedCopy(const void* from, void* to, const StridedLoop<2>& loop, size_t element_bytes,
                              cudaStream_t stream);

// `count` elements of 1, 2, 4 or 8 bytes become `bits`.
cudaError_t LaunchFill(void* to, uint64_t bits, int64_t count, size_t element_bytes, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_STRIDED_COPY_H_
