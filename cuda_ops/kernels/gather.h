// SPDX-License-Identifier: Apache-2.0
// Launchers of reading at indices along the middle axis of [outer, size, inner], and of its gradient. A negative index
// counts from the end; one out of range sets the status word and gives zeros.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_GATHER_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_GATHER_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

struct GatherArguments {
  const void* data = nullptr;     // gradient: dy [outer, count, inner]
  const void* indices = nullptr;  // [count] int32 or int64
  void* result = nullptr;         // [outer, count, inner]; gradient: dx [outer, size, inner]
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;
  int64_t count = 0;
  DType index_dtype = DType::kInt64;
  uint64_t* status_word = nullptr;
  int node_index = 0;
};
// Elements of 1, 2, 4 or 8 bytes.
cudaError_t LaunchGather(const GatherArguments& arguments, size_t element_bytes, cudaStream_t stream);
// Floating types. Deterministic: rows of one index are added in the order of its places (index_sort.h). Fewer than 2^31
// indices along an axis shorter than that.
size_t GatherGradientWorkspace(const GatherArguments& arguments);
cudaError_t LaunchGatherGradient(const GatherArguments& arguments, DType dtype, void* workspace, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_GATHER_H_
