// SPDX-License-Identifier: Apache-2.0
// Indices brought beside their equals, in the order in which they came: what adds at indices walks the runs and needs no
// atomics. A stable radix sort of bytes after Knuth (The Art of Computer Programming 3, 5.2.5), by tiles of one block.
// Work is linear in the number of indices: three launches a byte of the size, and one in front.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_INDEX_SORT_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_INDEX_SORT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

struct IndexSortArguments {
  const void* indices = nullptr;  // [count] of index_dtype, int32 or int64; negative ones count from `size`
  int64_t count = 0;              // below 2^31
  int64_t size = 0;               // below 2^31 - 1
  DType index_dtype = DType::kInt64;
  uint64_t* status_word = nullptr;  // set for an index out of range
  int node_index = 0;
};

// Both [count]. An index out of range has the key `size`, behind all others.
struct SortedIndices {
  const uint32_t* keys = nullptr;    // ascending
  const uint32_t* places = nullptr;  // where the key stood among the indices; ascending among equal keys
};

size_t IndexSortWorkspace(int64_t count);
// The result lies in the workspace, 16-byte aligned, until somebody else writes there.
cudaError_t LaunchIndexSort(const IndexSortArguments& arguments, void* workspace, SortedIndices* sorted,
                            cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_INDEX_SORT_H_
