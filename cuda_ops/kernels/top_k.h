// SPDX-License-Identifier: Apache-2.0
// Launchers of what is decided by comparing along the middle axis of [outer, length, inner]. A NaN is larger than every
// number and equal to another NaN; of equal values the first in the axis comes first.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_TOP_K_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_TOP_K_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

struct TopKArguments {
  const void* x = nullptr;
  void* values = nullptr;      // [outer, kept, inner]; may be null
  int64_t* indices = nullptr;  // the same, along the axis; may be null
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;  // outer * length * inner up to kMostSortedKeys (index_sort.h)
  int64_t kept = 1;
  bool largest = true;          // else the smallest come first
  DType dtype = DType::kFloat;  // float, bfloat16, float16, double, int32, int64
};
size_t TopKBytes(const TopKArguments& arguments);
// Sorts all lines at once (index_sort.h): linear in their elements, whatever `kept` is.
cudaError_t LaunchTopK(const TopKArguments& arguments, void* workspace, cudaStream_t stream);

struct ArgExtremumArguments {
  const void* x = nullptr;
  int64_t* y = nullptr;  // [outer, inner], along the axis
  int64_t outer = 1;
  int64_t length = 1;  // not 0
  int64_t inner = 1;
  bool largest = true;
  bool last = false;            // of equal values the last
  DType dtype = DType::kFloat;  // as TopKArguments
};
cudaError_t LaunchArgExtremum(const ArgExtremumArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_TOP_K_H_
