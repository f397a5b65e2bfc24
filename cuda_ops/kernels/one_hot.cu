// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/divisor.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"
#include "cuda_ops/kernels/one_hot.h"

namespace onnxtrain {
namespace cuda_kernels {

__device__ inline int64_t OneHotIndex(const OneHotArguments& a, int64_t at) {
  switch (a.index_dtype) {
    case DType::kInt32:
      return static_cast<const int32_t*>(a.indices)[at];
    case DType::kFloat:
      return static_cast<int64_t>(static_cast<const float*>(a.indices)[at]);
    case DType::kDouble:
      return static_cast<int64_t>(static_cast<const double*>(a.indices)[at]);
    case DType::kUint8:
      return static_cast<const uint8_t*>(a.indices)[at];
    default:
      return static_cast<const int64_t*>(a.indices)[at];
  }
}

template <typename Bits>
__global__ void __launch_bounds__(kBlockThreads) OneHot(OneHotArguments a, Divisor by_inner, Divisor by_depth) {
  const auto* const values = static_cast<const Bits*>(a.values);
  const int64_t total = a.outer * a.depth * a.inner;
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    int64_t outer = i;
    const int64_t within = by_inner.Split(&outer);
    const int64_t place = by_depth.Split(&outer);
    const int64_t given = OneHotIndex(a, outer * a.inner + within);
    static_cast<Bits*>(a.y)[i] = values[(given < 0 ? given + a.depth : given) == place ? 1 : 0];
  }
}

template <typename Bits>
cudaError_t LaunchOneHotOf(const OneHotArguments& a, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(OneHot<Bits>, ElementBlocks(a.outer * a.depth * a.inner), kBlockThreads, 0, stream, a,
                          Divisor(a.inner), Divisor(a.depth));
}

}  // namespace cuda_kernels

cudaError_t LaunchOneHot(const OneHotArguments& a, size_t element_bytes, cudaStream_t stream) {
  if (a.outer * a.depth * a.inner == 0) return cudaSuccess;
  switch (element_bytes) {
    case 1:
      return cuda_kernels::LaunchOneHotOf<uint8_t>(a, stream);
    case 2:
      return cuda_kernels::LaunchOneHotOf<uint16_t>(a, stream);
    case 4:
      return cuda_kernels::LaunchOneHotOf<uint32_t>(a, stream);
    case 8:
      return cuda_kernels::LaunchOneHotOf<uint64_t>(a, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace onnxtrain
