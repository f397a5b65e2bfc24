// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"
#include "cuda_ops/kernels/resize.h"

namespace onnxtrain {
namespace cuda_kernels {

struct TapRange {
  int64_t begin;
  int64_t end;
};

// Over the taps of kAxis and all axes behind it, from element `at` of x on.
template <int kAxes, int kAxis = 0>
__device__ float TapSum(const ResizeArguments& a, const TapRange (&taps)[kAxes], int64_t at) {
  if constexpr (kAxis == kAxes) {
    return LoadFloat(a.x, a.dtype, at);
  } else {
    const ResizedAxis& axis = a.axis[kAxis];
    float sum = 0;
    for (int64_t t = taps[kAxis].begin; t < taps[kAxis].end; ++t) {
      sum += axis.weight[t] * TapSum<kAxes, kAxis + 1>(a, taps, at + axis.offset[t]);
    }
    return sum;
  }
}

template <int kAxes>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks) Resize(ResizeArguments a) {
  for (int64_t i = FirstElement(); i < a.count; i += ElementStride()) {
    int64_t rest = i;
    int64_t at = 0;
    TapRange taps[kAxes];
#pragma unroll
    for (int n = kAxes - 1; n >= 0; --n) {
      at += a.axis[n].inner.Split(&rest) * a.axis[n].inner_stride;
      const int64_t j = a.axis[n].size.Split(&rest);
      taps[n] = {a.axis[n].begin[j], a.axis[n].begin[j + 1]};
    }
    StoreFloat(a.y, a.y_dtype, i, TapSum<kAxes>(a, taps, at + rest * a.outer_stride));
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchResize(const ResizeArguments& a, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  switch (a.axes) {
    case 1:
      return ONNXTRAIN_LAUNCH(cuda_kernels::Resize<1>, ElementBlocks(a.count), kBlockThreads, 0, stream, a);
    case 2:
      return ONNXTRAIN_LAUNCH(cuda_kernels::Resize<2>, ElementBlocks(a.count), kBlockThreads, 0, stream, a);
    case 3:
      return ONNXTRAIN_LAUNCH(cuda_kernels::Resize<3>, ElementBlocks(a.count), kBlockThreads, 0, stream, a);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace onnxtrain
