// SPDX-License-Identifier: Apache-2.0
// Sums and maxima over a block of kBlockThreads threads, in a fixed order: a butterfly in each warp, then the warps'
// results by the first warp. Every thread must call; every thread gets the result. Device code.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_BLOCK_SUM_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_BLOCK_SUM_H_

#include "cuda_ops/device_code.h"
#include "cuda_ops/kernels/grid.h"

namespace onnxtrain::cuda_kernels {

struct Plus {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return a + b;
  }
  template <typename T>
  __device__ static T Neutral() {
    return T(0);
  }
};

// A NaN on either side is kept.
struct Greater {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return a != a || a > b ? a : b;
  }
  template <typename T>
  __device__ static T Neutral() {
    return -T(__builtin_huge_valf());
  }
};

template <typename Combine, typename T>
__device__ T WarpReduce(T value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = Combine::Of(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

template <typename Combine, typename T>
__device__ T BlockReduce(T value) {
  constexpr unsigned kWarps = kBlockThreads / 32;
  __shared__ T of_warp[kWarps];
  __shared__ T of_block;
  value = WarpReduce<Combine>(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    const T mine = threadIdx.x < kWarps ? of_warp[threadIdx.x] : Combine::template Neutral<T>();
    const T total = WarpReduce<Combine>(mine);
    if (threadIdx.x == 0) of_block = total;
  }
  __syncthreads();
  return of_block;  // no thread writes it again before all have passed the next call's first barrier
}

template <typename T>
__device__ T BlockSum(T value) {
  return BlockReduce<Plus>(value);
}
template <typename T>
__device__ T BlockMax(T value) {
  return BlockReduce<Greater>(value);
}

}  // namespace onnxtrain::cuda_kernels

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_BLOCK_SUM_H_
