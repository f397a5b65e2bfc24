// SPDX-License-Identifier: Apache-2.0
// Launchers of BatchNormalization over [samples, channels, inner]: a block a channel, sums in double.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_BATCH_NORMALIZATION_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_BATCH_NORMALIZATION_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

struct BatchNormalizationArguments {
  const void* x = nullptr;
  const float* scale = nullptr;  // [channels], as all that follow
  const float* bias = nullptr;   // forward
  const float* mean = nullptr;   // running statistics; gradient: null for those of the batch
  const float* variance = nullptr;
  int64_t samples = 0;
  int64_t channels = 0;
  int64_t inner = 0;
  DType dtype = DType::kFloat;  // of x, y, dy, dx: float, bfloat16, float16
  float epsilon = 0;
  // Forward.
  void* y = nullptr;
  bool training = false;
  double momentum = 0;
  float* mean_new = nullptr;  // training; may be null
  float* variance_new = nullptr;
  // Gradient.
  const void* dy = nullptr;
  void* dx = nullptr;       // may be dy or x
  float* dscale = nullptr;  // may be null
  float* dbias = nullptr;   // may be null
};
cudaError_t LaunchBatchNormalization(const BatchNormalizationArguments& arguments, cudaStream_t stream);
cudaError_t LaunchBatchNormalizationGradient(const BatchNormalizationArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_BATCH_NORMALIZATION_H_
