// SPDX-License-Identifier: Apache-2.0
// Sums over the threads before each thread of a warp, and of a block of kBlockThreads, in a fixed order. Every thread
// must call. Device code.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_BLOCK_PREFIX_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_BLOCK_PREFIX_H_

#include "cuda_ops/device_code.h"
#include "cuda_ops/kernels/grid.h"

namespace onnxtrain::cuda_kernels {

template <typename Sum>
struct Prefix {
  Sum before;  // sum of the threads before this one
  Sum total;   // of all threads
};

// A butterfly: groups of twice the size learn from the other half what lies before them.
template <typename Sum>
__device__ Prefix<Sum> WarpPrefix(Sum value) {
  Prefix<Sum> prefix{0, value};
  for (int distance = 1; distance < 32; distance *= 2) {
    const Sum other = __shfl_xor_sync(0xffffffffu, prefix.total, distance);
    if ((threadIdx.x & static_cast<unsigned>(distance)) != 0) prefix.before += other;
    prefix.total += other;
  }
  return prefix;
}

template <typename Sum>
__device__ Prefix<Sum> BlockPrefix(Sum value) {
  constexpr unsigned kWarps = kBlockThreads / 32;
  __shared__ Sum of_warp[kWarps];
  Prefix<Sum> prefix = WarpPrefix(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = prefix.total;
  __syncthreads();
  Sum before = 0;
  Sum total = 0;
  for (unsigned warp = 0; warp < kWarps; ++warp) {
    if (warp == threadIdx.x / 32) before = total;
    total += of_warp[warp];
  }
  __syncthreads();  // before the next call writes
  return {before + prefix.before, total};
}

}  // namespace onnxtrain::cuda_kernels

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_BLOCK_PREFIX_H_
