// SPDX-License-Identifier: Apache-2.0
// Launchers of the optimizers' update rules over a run of elements with one set of hyper-parameters (formulas:
// runtime/math/optimizer.h). An output may be exactly its input. A step that is not applied leaves everything as it
// was.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_OPTIMIZER_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_OPTIMIZER_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace onnxtrain {

enum class OptimizerRule : uint8_t { kSgd, kAdam, kAdamW, kAdagrad, kLion };

struct OptimizerArguments {
  const float* weight = nullptr;
  const float* gradient = nullptr;
  const float* state1 = nullptr;  // momentum, first moment, sum of squares
  const float* state2 = nullptr;  // second moment of Adam and AdamW, else null
  float* weight_new = nullptr;
  float* state1_new = nullptr;
  float* state2_new = nullptr;
  int64_t count = 0;
  // Scalars of the step, in device memory.
  const double* learning_rate = nullptr;
  const double* grad_scale = nullptr;
  const int64_t* step = nullptr;  // updates done before this one
  const bool* apply = nullptr;
  double learning_rate_multiplier = 1;
  double weight_decay = 0;
  double beta1 = 0;  // of SGD the momentum
  double beta2 = 0;
  double epsilon = 0;
  bool nesterov = false;
};
cudaError_t LaunchOptimizer(OptimizerRule rule, const OptimizerArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_OPTIMIZER_H_
