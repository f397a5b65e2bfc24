// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/device_code.h"
#include "cuda_ops/kernels/block_sum.h"
#include "cuda_ops/kernels/grid.h"
#include "cuda_ops/kernels/step_control.h"

namespace onnxtrain {
namespace cuda_kernels {

__global__ void StepSums(StepSumsArguments a) {
  const double weight = *a.weight;
  // The kernels that may set the word come before this one in the step.
  const uint64_t word = *a.status_word;
  *a.status_word = 0;
  // A micro-batch without counted labels has a mean of 0/0; it adds nothing.
  a.sums[0] = weight == 0 ? 0 : static_cast<double>(*a.loss) * weight;
  a.sums[1] = weight;
  a.sums[2] = word == 0 ? 0 : 1;
  if (a.status != nullptr) *a.status = static_cast<int64_t>(word);
}

__global__ void __launch_bounds__(kBlockThreads) NormPartials(const float* values, int64_t count, double* partial) {
  const int64_t blocks = (count + kNormBlock - 1) / kNormBlock;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t end = (block + 1) * kNormBlock < count ? (block + 1) * kNormBlock : count;
    double sum = 0;
    for (int64_t i = block * kNormBlock + threadIdx.x; i < end; i += kBlockThreads) {
      const double value = values[i];
      sum += value * value;
    }
    sum = BlockSum(sum);
    if (threadIdx.x == 0) partial[block] = sum;
  }
}

__global__ void __launch_bounds__(kBlockThreads) SumPartials(const double* partial, int64_t count, double* total) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kBlockThreads) sum += partial[i];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) *total = sum;
}

__global__ void StepControl(StepControlArguments a) {
  const double weight = a.totals[1];
  const double loss = a.totals[0] / weight;
  const double norm = sqrt(a.totals[3]) / weight;
  double scale = a.multiplier / weight;
  if (a.clip > 0) {
    const double factor = a.clip / (a.multiplier * norm + 1e-6);
    scale *= factor < 1.0 ? factor : 1.0;
  }
  *a.loss = loss;
  *a.norm = norm;
  *a.scale = scale;
  // Finite: the difference with itself is 0, not NaN.
  *a.apply = loss - loss == 0 && norm - norm == 0 && a.totals[2] == 0 && weight > 0;
}

__global__ void LearningRate(math::LearningRateOptions options, const int64_t* step, double* rate) {
  *rate = math::LearningRateAt(options, *step);
}

__global__ void AdvanceStep(const int64_t* step, const bool* apply, int64_t* next) { *next = *step + (*apply ? 1 : 0); }

}  // namespace cuda_kernels

cudaError_t LaunchStepSums(const StepSumsArguments& arguments, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(cuda_kernels::StepSums, 1, 1, 0, stream, arguments);
}

cudaError_t LaunchNormPartials(const float* values, int64_t count, double* partial, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::NormPartials, RowBlocks(NormBlocks(count)), kBlockThreads, 0, stream, values,
                          count, partial);
}

cudaError_t LaunchSumPartials(const double* partial, int64_t count, double* sum, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(cuda_kernels::SumPartials, 1, kBlockThreads, 0, stream, partial, count, sum);
}

cudaError_t LaunchStepControl(const StepControlArguments& arguments, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(cuda_kernels::StepControl, 1, 1, 0, stream, arguments);
}

cudaError_t LaunchLearningRate(const math::LearningRateOptions& options, const int64_t* step, double* rate,
                               cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(cuda_kernels::LearningRate, 1, 1, 0, stream, options, step, rate);
}

cudaError_t LaunchAdvanceStep(const int64_t* step, const bool* apply, int64_t* next, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(cuda_kernels::AdvanceStep, 1, 1, 0, stream, step, apply, next);
}

}  // namespace onnxtrain
