// SPDX-License-Identifier: Apache-2.0
// Launchers of a step's scalars: sums, norm, control, learning rate, counter (passes/README.md). All pointers are
// device memory.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_STEP_CONTROL_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_STEP_CONTROL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "runtime/math/learning_rate.h"

namespace onnxtrain {

// sums = {loss * weight, weight, 1 if the status word is set}; `status` (may be null) gets the word, which is cleared.
struct StepSumsArguments {
  const float* loss = nullptr;
  const float* weight = nullptr;
  uint64_t* status_word = nullptr;
  double* sums = nullptr;
  int64_t* status = nullptr;
};
cudaError_t LaunchStepSums(const StepSumsArguments& arguments, cudaStream_t stream);

// One tensor of a norm, cut into blocks of kNormBlock elements.
inline constexpr int64_t kNormBlock = 32768;
inline int64_t NormBlocks(int64_t count) { return (count + kNormBlock - 1) / kNormBlock; }
// Squares of `count` elements into partial[0 .. NormBlocks(count)), summed in double in a fixed order.
cudaError_t LaunchNormPartials(const float* values, int64_t count, double* partial, cudaStream_t stream);
// Sum of all partial sums, in a fixed order.
cudaError_t LaunchSumPartials(const double* partial, int64_t count, double* sum, cudaStream_t stream);

struct StepControlArguments {
  const double* totals = nullptr;  // {loss sum, weight, faults, squared norm} over all ranks
  double* loss = nullptr;
  double* norm = nullptr;
  double* scale = nullptr;
  bool* apply = nullptr;
  double clip = 0;
  double multiplier = 1;
};
cudaError_t LaunchStepControl(const StepControlArguments& arguments, cudaStream_t stream);

cudaError_t LaunchLearningRate(const math::LearningRateOptions& options, const int64_t* step, double* rate,
                               cudaStream_t stream);
cudaError_t LaunchAdvanceStep(const int64_t* step, const bool* apply, int64_t* next, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_STEP_CONTROL_H_
