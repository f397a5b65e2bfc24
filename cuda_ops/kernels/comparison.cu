// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/comparison.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"

namespace onnxtrain {
namespace cuda_kernels {

template <typename T>
__device__ bool Compared(CompareFunction function, T a, T b) {
  switch (function) {
    case CompareFunction::kEqual:
      return a == b;
    case CompareFunction::kGreater:
      return a > b;
    case CompareFunction::kGreaterOrEqual:
      return a >= b;
    case CompareFunction::kLess:
      return a < b;
    case CompareFunction::kLessOrEqual:
      return a <= b;
    case CompareFunction::kAnd:
      return a != T(0) && b != T(0);
    case CompareFunction::kOr:
      return a != T(0) || b != T(0);
    case CompareFunction::kXor:
      return (a != T(0)) != (b != T(0));
  }
  return false;
}

__global__ void __launch_bounds__(kBlockThreads) Compare(CompareFunction function, CompareArguments g) {
  for (int64_t i = FirstElement(); i < g.loop.count; i += ElementStride()) {
    const auto at = g.loop.At(i);
    bool y = false;
    switch (g.dtype) {
      case DType::kInt32:
        y = Compared(function, static_cast<const int32_t*>(g.a)[at.at[0]], static_cast<const int32_t*>(g.b)[at.at[1]]);
        break;
      case DType::kInt64:
        y = Compared(function, static_cast<const int64_t*>(g.a)[at.at[0]], static_cast<const int64_t*>(g.b)[at.at[1]]);
        break;
      case DType::kBool:
        y = Compared(function, static_cast<const uint8_t*>(g.a)[at.at[0]], static_cast<const uint8_t*>(g.b)[at.at[1]]);
        break;
      default:
        y = Compared(function, LoadFloat(g.a, g.dtype, at.at[0]), LoadFloat(g.b, g.dtype, at.at[1]));
    }
    g.y[at.at[2]] = y;
  }
}

template <typename Bits>
__global__ void __launch_bounds__(kBlockThreads) Select(SelectArguments g) {
  for (int64_t i = FirstElement(); i < g.loop.count; i += ElementStride()) {
    const auto at = g.loop.At(i);
    static_cast<Bits*>(g.y)[at.at[3]] =
        g.condition[at.at[0]] ? static_cast<const Bits*>(g.yes)[at.at[1]] : static_cast<const Bits*>(g.no)[at.at[2]];
  }
}

__global__ void __launch_bounds__(kBlockThreads) Not(const bool* x, bool* y, int64_t count) {
  for (int64_t i = FirstElement(); i < count; i += ElementStride()) y[i] = !x[i];
}

}  // namespace cuda_kernels

cudaError_t LaunchCompare(CompareFunction function, const CompareArguments& g, cudaStream_t stream) {
  if (g.loop.count == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::Compare, ElementBlocks(g.loop.count), kBlockThreads, 0, stream, function, g);
}

cudaError_t LaunchSelect(const SelectArguments& g, cudaStream_t stream) {
  if (g.loop.count == 0) return cudaSuccess;
  const unsigned blocks = ElementBlocks(g.loop.count);
  switch (g.element_bytes) {
    case 1:
      return ONNXTRAIN_LAUNCH(cuda_kernels::Select<uint8_t>, blocks, kBlockThreads, 0, stream, g);
    case 2:
      return ONNXTRAIN_LAUNCH(cuda_kernels::Select<uint16_t>, blocks, kBlockThreads, 0, stream, g);
    case 4:
      return ONNXTRAIN_LAUNCH(cuda_kernels::Select<uint32_t>, blocks, kBlockThreads, 0, stream, g);
    case 8:
      return ONNXTRAIN_LAUNCH(cuda_kernels::Select<uint64_t>, blocks, kBlockThreads, 0, stream, g);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t LaunchNot(const bool* x, bool* y, int64_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::Not, ElementBlocks(count), kBlockThreads, 0, stream, x, y, count);
}

}  // namespace onnxtrain
