// SPDX-License-Identifier: Apache-2.0
// Rows that a team of threads reduces: a warp where rows are short, so that a block serves eight of them, else a block.
// Device code.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_ROW_REDUCE_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_ROW_REDUCE_H_

#include "cuda_ops/kernels/block_sum.h"

namespace onnxtrain::cuda_kernels {

// kTeam is 32 or kBlockThreads. A block always has kBlockThreads threads.
template <unsigned kTeam>
struct RowTeam {
  static constexpr unsigned kRowsPerBlock = kBlockThreads / kTeam;

  __device__ static unsigned Thread() { return threadIdx.x % kTeam; }
  // All threads of a warp, or of the block, agree on the row.
  __device__ static int64_t FirstRow() {
    return static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.x / kTeam;
  }
  __device__ static int64_t RowStride() { return static_cast<int64_t>(gridDim.x) * kRowsPerBlock; }

  template <typename Combine, typename T>
  __device__ static T Reduce(T value) {
    if constexpr (kTeam == 32) {
      return WarpReduce<Combine>(value);
    } else {
      return BlockReduce<Combine>(value);
    }
  }
};

using WarpRows = RowTeam<32>;
using BlockRows = RowTeam<kBlockThreads>;

// Rows longer than this are a block's.
inline constexpr int64_t kLongestWarpRow = 1024;

inline unsigned BlocksForRows(int64_t rows, int64_t length) {
  return RowBlocks(length <= kLongestWarpRow ? (rows + WarpRows::kRowsPerBlock - 1) / WarpRows::kRowsPerBlock : rows);
}

// Launches kernel<Team>(arguments) with the team that fits `length`.
#define ONNXTRAIN_LAUNCH_ROWS(kernel, rows, length, stream, ...)                                            \
  ((length) <= ::onnxtrain::cuda_kernels::kLongestWarpRow                                                   \
       ? ONNXTRAIN_LAUNCH(kernel<::onnxtrain::cuda_kernels::WarpRows>,                                      \
                          ::onnxtrain::cuda_kernels::BlocksForRows(rows, length), kBlockThreads, 0, stream, \
                          __VA_ARGS__)                                                                      \
       : ONNXTRAIN_LAUNCH(kernel<::onnxtrain::cuda_kernels::BlockRows>,                                     \
                          ::onnxtrain::cuda_kernels::BlocksForRows(rows, length), kBlockThreads, 0, stream, \
                          __VA_ARGS__))

}  // namespace onnxtrain::cuda_kernels

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_ROW_REDUCE_H_
