// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/gather.h"
#include "cuda_ops/kernels/grid.h"
#include "cuda_ops/kernels/index_sort.h"
#include "cuda_ops/kernels/strided_copy.h"
#include "runtime/kernel_fault.h"

namespace onnxtrain {
namespace cuda_kernels {

// In [0, size), or -1 when it is out of range.
__device__ int64_t IndexAt(const GatherArguments& a, int64_t i) {
  const int64_t given = a.index_dtype == DType::kInt32 ? static_cast<const int32_t*>(a.indices)[i]
                                                       : static_cast<const int64_t*>(a.indices)[i];
  const int64_t index = given < 0 ? given + a.size : given;
  return index >= 0 && index < a.size ? index : -1;
}

template <typename Bits>
__global__ void __launch_bounds__(kBlockThreads) Gather(GatherArguments a) {
  const int64_t total = a.outer * a.count * a.inner;
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    const int64_t row = i / a.inner;
    const int64_t index = IndexAt(a, row % a.count);
    Bits value = 0;
    if (index >= 0) {
      value = static_cast<const Bits*>(a.data)[(row / a.count * a.size + index) * a.inner + i % a.inner];
    } else {
      ReportFault(a.status_word, static_cast<uint32_t>(DeviceFault::kIndexOutOfRange), a.node_index);
    }
    static_cast<Bits*>(a.result)[i] = value;
  }
}

// A block a place in the sorted order. The block of the first of a run of equal keys adds the rows of the run.
__global__ void __launch_bounds__(kBlockThreads) GatherGradient(GatherArguments a, SortedIndices sorted, DType dtype) {
  for (int64_t place = blockIdx.x; place < a.outer * a.count; place += gridDim.x) {
    const int64_t outer = place / a.count;
    const int64_t first = place % a.count;
    const uint32_t key = sorted.keys[first];
    if (key == a.size || (first > 0 && sorted.keys[first - 1] == key)) continue;
    for (int64_t column = threadIdx.x; column < a.inner; column += kBlockThreads) {
      float sum = 0;
      for (int64_t i = first; i < a.count && sorted.keys[i] == key; ++i) {
        sum += LoadFloat(a.data, dtype, (outer * a.count + sorted.places[i]) * a.inner + column);
      }
      StoreFloat(a.result, dtype, (outer * a.size + key) * a.inner + column, sum);
    }
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchGather(const GatherArguments& a, size_t element_bytes, cudaStream_t stream) {
  const int64_t total = a.outer * a.count * a.inner;
  if (total == 0) return cudaSuccess;
  const unsigned blocks = ElementBlocks(total);
  switch (element_bytes) {
    case 1:
      return ONNXTRAIN_LAUNCH(cuda_kernels::Gather<uint8_t>, blocks, kBlockThreads, 0, stream, a);
    case 2:
      return ONNXTRAIN_LAUNCH(cuda_kernels::Gather<uint16_t>, blocks, kBlockThreads, 0, stream, a);
    case 4:
      return ONNXTRAIN_LAUNCH(cuda_kernels::Gather<uint32_t>, blocks, kBlockThreads, 0, stream, a);
    case 8:
      return ONNXTRAIN_LAUNCH(cuda_kernels::Gather<uint64_t>, blocks, kBlockThreads, 0, stream, a);
    default:
      return cudaErrorInvalidValue;
  }
}

size_t GatherGradientWorkspace(const GatherArguments& a) { return IndexSortWorkspace(a.count); }

cudaError_t LaunchGatherGradient(const GatherArguments& a, DType dtype, void* workspace, cudaStream_t stream) {
  cudaError_t error = LaunchFill(a.result, 0, a.outer * a.size * a.inner, SizeOf(dtype), stream);
  if (error != cudaSuccess || a.outer * a.count * a.inner == 0) return error;
  SortedIndices sorted;
  error = LaunchIndexSort({a.indices, a.count, a.size, a.index_dtype, a.status_word, a.node_index}, workspace, &sorted,
                          stream);
  if (error != cudaSuccess) return error;
  return ONNXTRAIN_LAUNCH(cuda_kernels::GatherGradient, RowBlocks(a.outer * a.count), kBlockThreads, 0, stream, a,
                          sorted, dtype);
}

}  // namespace onnxtrain
