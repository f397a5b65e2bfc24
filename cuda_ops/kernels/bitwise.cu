// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/bitwise.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"

namespace onnxtrain {
namespace cuda_kernels {

template <typename Bits>
__device__ Bits BitwiseOf(BitwiseFunction function, Bits a, Bits b) {
  constexpr unsigned kWidth = sizeof(Bits) * 8;
  switch (function) {
    case BitwiseFunction::kAnd:
      return a & b;
    case BitwiseFunction::kOr:
      return a | b;
    case BitwiseFunction::kXor:
      return a ^ b;
    case BitwiseFunction::kShiftLeft:
      return b >= kWidth ? Bits(0) : static_cast<Bits>(uint64_t{a} << b);
    default:
      return b >= kWidth ? Bits(0) : static_cast<Bits>(a >> b);
  }
}

template <typename Bits>
__global__ void __launch_bounds__(kBlockThreads) Bitwise(BitwiseFunction function, BitwiseArguments g) {
  for (int64_t i = FirstElement(); i < g.loop.count; i += ElementStride()) {
    const auto at = g.loop.At(i);
    static_cast<Bits*>(g.y)[at.at[2]] =
        BitwiseOf(function, static_cast<const Bits*>(g.a)[at.at[0]], static_cast<const Bits*>(g.b)[at.at[1]]);
  }
}

template <typename Bits>
__global__ void __launch_bounds__(kBlockThreads) BitwiseNot(const Bits* x, Bits* y, int64_t count) {
  for (int64_t i = FirstElement(); i < count; i += ElementStride()) y[i] = static_cast<Bits>(~x[i]);
}

template <typename Bits>
cudaError_t LaunchBitwiseOf(BitwiseFunction function, const BitwiseArguments& g, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(Bitwise<Bits>, ElementBlocks(g.loop.count), kBlockThreads, 0, stream, function, g);
}

template <typename Bits>
cudaError_t LaunchBitwiseNotOf(const void* x, void* y, int64_t count, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(BitwiseNot<Bits>, ElementBlocks(count), kBlockThreads, 0, stream, static_cast<const Bits*>(x),
                          static_cast<Bits*>(y), count);
}

}  // namespace cuda_kernels

cudaError_t LaunchBitwise(BitwiseFunction function, const BitwiseArguments& g, cudaStream_t stream) {
  if (g.loop.count == 0) return cudaSuccess;
  switch (g.element_bytes) {
    case 1:
      return cuda_kernels::LaunchBitwiseOf<uint8_t>(function, g, stream);
    case 2:
      return cuda_kernels::LaunchBitwiseOf<uint16_t>(function, g, stream);
    case 4:
      return cuda_kernels::LaunchBitwiseOf<uint32_t>(function, g, stream);
    case 8:
      return cuda_kernels::LaunchBitwiseOf<uint64_t>(function, g, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t LaunchBitwiseNot(const void* x, void* y, int64_t count, size_t element_bytes, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  switch (element_bytes) {
    case 1:
      return cuda_kernels::LaunchBitwiseNotOf<uint8_t>(x, y, count, stream);
    case 2:
      return cuda_kernels::LaunchBitwiseNotOf<uint16_t>(x, y, count, stream);
    case 4:
      return cuda_kernels::LaunchBitwiseNotOf<uint32_t>(x, y, count, stream);
    case 8:
      return cuda_kernels::LaunchBitwiseNotOf<uint64_t>(x, y, count, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace onnxtrain
