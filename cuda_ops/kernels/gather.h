// SPDX-License-Identifier: Apache-2.0
// Launchers of reading at indices. One out of range sets the status word and gives zeros.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_GATHER_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_GATHER_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda_ops/kernels/index_places.h"

namespace onnxtrain {

struct GatherArguments {
  const void* data = nullptr;  // [outer, size, inner]
  void* result = nullptr;      // [outer, count, inner]
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;
  int64_t count = 0;
  IndexFault fault;
};
// Row i of the result is row places.At(i) of the data. Elements of 1, 2, 4 or 8 bytes.
cudaError_t LaunchGather(const GatherArguments& arguments, const AxisPlaces& places, size_t element_bytes,
                         cudaStream_t stream);
cudaError_t LaunchGather(const GatherArguments& arguments, const ElementPlaces& places, size_t element_bytes,
                         cudaStream_t stream);
cudaError_t LaunchGather(const GatherArguments& arguments, const TuplePlaces& places, size_t element_bytes,
                         cudaStream_t stream);
cudaError_t LaunchGather(const GatherArguments& arguments, const PadPlaces& places, size_t element_bytes,
                         cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_GATHER_H_
