// SPDX-License-Identifier: Apache-2.0
// Launchers of LayerNormalization and RMSNormalization over rows of contiguous elements.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_NORMALIZATION_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_NORMALIZATION_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

struct RowNormalizationArguments {
  const void* x = nullptr;      // [rows, length]
  const void* scale = nullptr;  // [length]
  const void* bias = nullptr;   // [length]; may be null
  void* y = nullptr;
  float* mean = nullptr;    // [rows]; may be null
  float* factor = nullptr;  // [rows], 1 / standard deviation; may be null
  int64_t rows = 0;
  int64_t length = 0;
  DType dtype = DType::kFloat;            // of x and y
  DType parameter_dtype = DType::kFloat;  // of scale and bias
  float epsilon = 0;
  bool rms = false;  // a mean of zero
};
cudaError_t LaunchRowNormalization(const RowNormalizationArguments& arguments, cudaStream_t stream);

struct RowNormalizationGradientArguments {
  const void* dy = nullptr;
  const void* x = nullptr;
  const void* scale = nullptr;
  void* dx = nullptr;
  void* dscale = nullptr;      // may be null
  void* dbias = nullptr;       // may be null
  float* workspace = nullptr;  // RowNormalizationGradientFloats(rows, length) of them
  int64_t rows = 0;
  int64_t length = 0;
  DType dtype = DType::kFloat;
  DType parameter_dtype = DType::kFloat;
  float epsilon = 0;
  bool rms = false;
};
int64_t RowNormalizationGradientFloats(int64_t rows, int64_t length);
// dscale and dbias as sums over chunks of rows, then over the chunks, without atomics; then dx, which may be dy or x.
cudaError_t LaunchRowNormalizationGradient(const RowNormalizationGradientArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_NORMALIZATION_H_
