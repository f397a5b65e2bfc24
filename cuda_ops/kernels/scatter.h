// SPDX-License-Identifier: Apache-2.0
// Launchers of writing and adding at indices. Deterministic: updates are sorted by where they go, and one thread joins
// those of one element in the order of their indices, so the bits are those of a loop over the indices.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_SCATTER_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_SCATTER_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda_ops/kernels/index_places.h"
#include "graph/dtype.h"
#include "runtime/math/scatter.h"

namespace onnxtrain {

struct ScatterArguments {
  const void* updates = nullptr;  // [outer, count, inner]
  void* result = nullptr;         // [outer, size, inner], holds what is written over or added to
  int64_t outer = 1;
  int64_t size = 1;  // up to kMostSortedKeys (index_sort.h), as count is
  int64_t inner = 1;
  int64_t count = 0;
  DType dtype = DType::kFloat;  // see ScatterServes
  ScatterReduction reduction = ScatterReduction::kNone;
  IndexFault fault;
};

// kNone: elements of 1, 2, 4 or 8 bytes. Otherwise float, bfloat16 and float16, joined in float and rounded once;
// double, int32, int64.
bool ScatterServes(ScatterReduction reduction, DType dtype);

// Bytes of workspace for `count` updates.
size_t ScatterBytes(int64_t count);

// Row i of the updates goes to row places.At(i) of `size`.
cudaError_t LaunchScatter(const ScatterArguments& arguments, const AxisPlaces& places, void* workspace,
                          cudaStream_t stream);
cudaError_t LaunchScatter(const ScatterArguments& arguments, const ElementPlaces& places, void* workspace,
                          cudaStream_t stream);
cudaError_t LaunchScatter(const ScatterArguments& arguments, const TuplePlaces& places, void* workspace,
                          cudaStream_t stream);
cudaError_t LaunchScatter(const ScatterArguments& arguments, const PadPlaces& places, void* workspace,
                          cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_SCATTER_H_
