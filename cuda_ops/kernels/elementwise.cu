// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/elementwise.h"
#include "cuda_ops/kernels/grid.h"
#include "runtime/math/functions.h"

namespace onnxtrain {
namespace cuda_kernels {

struct AddOf {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return a + b;
  }
};
struct SubOf {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return a - b;
  }
};
struct MulOf {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return a * b;
  }
};
struct DivOf {
  __device__ static float Of(float a, float b) { return a / b; }
};
struct MaxOf {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return math::Max(a, b);
  }
};
struct MinOf {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return math::Min(a, b);
  }
};
struct PowOf {
  __device__ static float Of(float a, float b) { return b == 2.0f ? a * a : ::powf(a, b); }
};
struct PReluOf {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return a > T(0) ? a : b * a;
  }
};

template <typename F>
__global__ void __launch_bounds__(kBlockThreads) FloatArithmetic(BinaryArguments g) {
  for (int64_t i = FirstElement(); i < g.loop.count; i += ElementStride()) {
    const auto at = g.loop.At(i);
    const float y = F::Of(LoadFloat(g.a, g.dtype, at.at[0]), LoadFloat(g.b, g.dtype, at.at[1]));
    StoreFloat(g.y, g.dtype, at.at[2], g.scale == 1.0f ? y : y * g.scale);
  }
}

// Types that are computed in themselves. Integers wrap around, hence unsigned where that is the same.
template <typename F, typename T>
__global__ void __launch_bounds__(kBlockThreads) OwnArithmetic(BinaryArguments g) {
  for (int64_t i = FirstElement(); i < g.loop.count; i += ElementStride()) {
    const auto at = g.loop.At(i);
    static_cast<T*>(g.y)[at.at[2]] = F::Of(static_cast<const T*>(g.a)[at.at[0]], static_cast<const T*>(g.b)[at.at[1]]);
  }
}

template <typename F>
cudaError_t LaunchFloat(const BinaryArguments& g, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(FloatArithmetic<F>, ElementBlocks(g.loop.count), kBlockThreads, 0, stream, g);
}

template <typename F, typename T>
cudaError_t LaunchOwn(const BinaryArguments& g, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH((OwnArithmetic<F, T>), ElementBlocks(g.loop.count), kBlockThreads, 0, stream, g);
}

// Wrapping types for sums and products, signed ones for comparisons.
template <typename F, bool kWraps>
cudaError_t LaunchAny(const BinaryArguments& g, cudaStream_t stream) {
  switch (g.dtype) {
    case DType::kInt32:
      return LaunchOwn<F, std::conditional_t<kWraps, uint32_t, int32_t>>(g, stream);
    case DType::kInt64:
      return LaunchOwn<F, std::conditional_t<kWraps, uint64_t, int64_t>>(g, stream);
    case DType::kDouble:
      return LaunchOwn<F, double>(g, stream);  // sums of micro-batches
    default:
      return LaunchFloat<F>(g, stream);
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchArithmetic(ArithmeticFunction function, const BinaryArguments& g, cudaStream_t stream) {
  if (g.loop.count == 0) return cudaSuccess;
  const bool integer = g.dtype == DType::kInt32 || g.dtype == DType::kInt64;
  switch (function) {
    case ArithmeticFunction::kAdd:
      return cuda_kernels::LaunchAny<cuda_kernels::AddOf, true>(g, stream);
    case ArithmeticFunction::kSub:
      return cuda_kernels::LaunchAny<cuda_kernels::SubOf, true>(g, stream);
    case ArithmeticFunction::kMul:
      return cuda_kernels::LaunchAny<cuda_kernels::MulOf, true>(g, stream);
    case ArithmeticFunction::kMax:
      return cuda_kernels::LaunchAny<cuda_kernels::MaxOf, false>(g, stream);
    case ArithmeticFunction::kMin:
      return cuda_kernels::LaunchAny<cuda_kernels::MinOf, false>(g, stream);
    case ArithmeticFunction::kPRelu:
      return cuda_kernels::LaunchAny<cuda_kernels::PReluOf, false>(g, stream);
    case ArithmeticFunction::kDiv:
      return integer ? cudaErrorInvalidValue : cuda_kernels::LaunchFloat<cuda_kernels::DivOf>(g, stream);
    case ArithmeticFunction::kPow:
      return integer ? cudaErrorInvalidValue : cuda_kernels::LaunchFloat<cuda_kernels::PowOf>(g, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace onnxtrain
