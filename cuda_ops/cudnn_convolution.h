// SPDX-License-Identifier: Apache-2.0
// Convolutions as operation graphs of cuDNN: forward and both gradients, one to three spatial axes, groups, on plain
// [N, C, ...] tensors, sums in float (double for double).
#ifndef ONNXTRAIN_CUDA_OPS_CUDNN_CONVOLUTION_H_
#define ONNXTRAIN_CUDA_OPS_CUDNN_CONVOLUTION_H_

#include <cstdint>

#include "cuda_ops/convolution_problem.h"
#include "cuda_ops/cudnn_plan.h"

namespace onnxtrain {

// Unique ids of the tensors; forward gives y, the gradients give x or w.
inline constexpr int64_t kConvolutionX = 1;
inline constexpr int64_t kConvolutionW = 2;
inline constexpr int64_t kConvolutionY = 3;

// Fails with the library's words. A window whose end sees less padding than the library derives from the sizes is
// described as it is.
StatusOr<CudnnGraph> ConvolutionGraph(const ConvolutionProblem& problem);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CUDNN_CONVOLUTION_H_
