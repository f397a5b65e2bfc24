// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"
#include "cuda_ops/kernels/strided_copy.h"

namespace onnxtrain {
namespace cuda_kernels {

template <typename Bits>
__global__ void __launch_bounds__(kBlockThreads) StridedCopy(const Bits* from, Bits* to, StridedLoop<2> loop) {
  for (int64_t i = FirstElement(); i < loop.count; i += ElementStride()) {
    const auto at = loop.At(i);
    to[at.at[1]] = from[at.at[0]];
  }
}

template <typename Bits>
__global__ void __launch_bounds__(kBlockThreads) Fill(Bits* to, Bits bits, int64_t count) {
  for (int64_t i = FirstElement(); i < count; i += ElementStride()) to[i] = bits;
}

template <typename Bits>
cudaError_t LaunchCopyOf(const void* from, void* to, const StridedLoop<2>& loop, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(StridedCopy<Bits>, ElementBlocks(loop.count), kBlockThreads, 0, stream,
                          static_cast<const Bits*>(from), static_cast<Bits*>(to), loop);
}

template <typename Bits>
cudaError_t LaunchFillOf(void* to, uint64_t bits, int64_t count, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(Fill<Bits>, ElementBlocks(count), kBlockThreads, 0, stream, static_cast<Bits*>(to),
                          static_cast<Bits>(bits), count);
}

}  // namespace cuda_kernels

cudaError_t LaunchStridedCopy(const void* from, void* to, const StridedLoop<2>& loop, size_t element_bytes,
                              cudaStream_t stream) {
  if (loop.count == 0) return cudaSuccess;
  switch (element_bytes) {
    case 1:
      return cuda_kernels::LaunchCopyOf<uint8_t>(from, to, loop, stream);
    case 2:
      return cuda_kernels::LaunchCopyOf<uint16_t>(from, to, loop, stream);
    case 4:
      return cuda_kernels::LaunchCopyOf<uint32_t>(from, to, loop, stream);
    case 8:
      return cuda_kernels::LaunchCopyOf<uint64_t>(from, to, loop, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t LaunchFill(void* to, uint64_t bits, int64_t count, size_t element_bytes, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  switch (element_bytes) {
    case 1:
      return cuda_kernels::LaunchFillOf<uint8_t>(to, bits, count, stream);
    case 2:
      return cuda_kernels::LaunchFillOf<uint16_t>(to, bits, count, stream);
    case 4:
      return cuda_kernels::LaunchFillOf<uint32_t>(to, bits, count, stream);
    case 8:
      return cuda_kernels::LaunchFillOf<uint64_t>(to, bits, count, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace onnxtrain
