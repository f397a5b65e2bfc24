// SPDX-License-Identifier: Apache-2.0
// Launchers of GroupNormalization over [samples, channels, inner], and of InstanceNormalization as its case of one
// channel a group. A group of one sample is one contiguous run; statistics and sums are taken in double, in a fixed
// order.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_GROUP_NORMALIZATION_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_GROUP_NORMALIZATION_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

struct GroupNormalizationArguments {
  const void* x = nullptr;
  const void* scale = nullptr;  // [channels]
  int64_t samples = 0;
  int64_t channels = 0;
  int64_t groups = 1;  // a divisor of channels
  int64_t inner = 0;
  DType dtype = DType::kFloat;            // of x, y, dy, dx: float, bfloat16, float16
  DType parameter_dtype = DType::kFloat;  // of scale, bias, dscale, dbias, the same choice
  double epsilon = 0;
  // Forward.
  const void* bias = nullptr;  // [channels]
  void* y = nullptr;
  // Gradient.
  const void* dy = nullptr;
  void* dx = nullptr;              // may be dy or x
  void* dscale = nullptr;          // may be null
  void* dbias = nullptr;           // may be null
  std::byte* workspace = nullptr;  // GroupNormalizationGradientBytes(...) of them, aligned for double
};
cudaError_t LaunchGroupNormalization(const GroupNormalizationArguments& arguments, cudaStream_t stream);

size_t GroupNormalizationGradientBytes(const GroupNormalizationArguments& arguments);
// Sums of every channel of every sample, from them dscale and dbias over the samples and what the groups subtract, then
// dx element by element.
cudaError_t LaunchGroupNormalizationGradient(const GroupNormalizationArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_GROUP_NORMALIZATION_H_
