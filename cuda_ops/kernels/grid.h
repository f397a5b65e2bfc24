// SPDX-License-Identifier: Apache-2.0
// Sizes of grids for loops over elements and rows.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_GRID_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_GRID_H_

#include <algorithm>
#include <cstdint>

namespace onnxtrain {

inline constexpr unsigned kBlockThreads = 256;

// For __launch_bounds__ of kernels that ptxas would otherwise fit into fewer registers than they need, by spilling: up
// to 64 registers a thread.
inline constexpr unsigned kResidentBlocks = 4;

// Blocks of kBlockThreads for a loop over `count` elements in which every thread goes on by the size of the grid;
// enough to fill any GPU, few enough that their start costs nothing.
inline unsigned ElementBlocks(int64_t count) {
  return static_cast<unsigned>(std::min<int64_t>((count + kBlockThreads - 1) / kBlockThreads, 2048));
}

// One block a row, in a grid-wide loop.
inline unsigned RowBlocks(int64_t rows) { return static_cast<unsigned>(std::min<int64_t>(rows, 65536)); }

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_GRID_H_
