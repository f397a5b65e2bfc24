// SPDX-License-Identifier: Apache-2.0
// Launchers of the classification losses over [outer, classes, inner] scores and [outer, inner] labels. A label out of
// range sets the status word and does not count.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_LOSS_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_LOSS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

enum class LossReduction : uint8_t { kNone, kSum, kMean };

struct ClassLossArguments {
  const void* scores = nullptr;
  const void* labels = nullptr;    // int32 or int64
  const float* weights = nullptr;  // [classes]; may be null
  int64_t outer = 1;
  int64_t classes = 1;
  int64_t inner = 1;
  DType dtype = DType::kFloat;  // of scores and results: float, bfloat16, float16
  DType label_dtype = DType::kInt64;
  bool ignores = false;
  int64_t ignore_index = 0;
  float smoothing = 0;
  bool softmax = true;  // false: the scores are logarithms of probabilities already
  LossReduction reduction = LossReduction::kMean;
  uint64_t* status_word = nullptr;
  int node_index = 0;
  // Forward.
  void* loss = nullptr;             // one, or [outer, inner] without reduction
  void* log_probability = nullptr;  // as scores; may be null
  // Gradient.
  const void* dloss = nullptr;  // as loss
  void* gradient = nullptr;     // as scores; may be scores
  double* workspace = nullptr;  // ClassLossDoubles(rows) of them
};
inline int64_t ClassLossDoubles(int64_t rows) { return 2 * rows + 2; }
cudaError_t LaunchClassLoss(const ClassLossArguments& arguments, cudaStream_t stream);
cudaError_t LaunchClassLossGradient(const ClassLossArguments& arguments, cudaStream_t stream);

// The sum of the weights of all counted labels, as float.
cudaError_t LaunchCountLabels(const ClassLossArguments& arguments, float* count, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_LOSS_H_
