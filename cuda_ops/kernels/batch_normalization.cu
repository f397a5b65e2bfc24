// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/batch_normalization.h"
#include "cuda_ops/kernels/block_sum.h"
#include "cuda_ops/kernels/divisor.h"
#include "cuda_ops/kernels/element_access.h"

namespace onnxtrain {
namespace cuda_kernels {

struct ChannelStatistics {
  float mean;
  double variance;
  float factor;  // 1 / standard deviation
};

// Element i of a channel, 0 <= i < samples * inner.
__device__ int64_t ChannelElement(const BatchNormalizationArguments& a, const Divisor& by_inner, int64_t channel,
                                  int64_t i) {
  const int64_t within = by_inner.Split(&i);
  return (i * a.channels + channel) * a.inner + within;
}

__device__ ChannelStatistics BatchStatistics(const BatchNormalizationArguments& a, const Divisor& by_inner,
                                             int64_t channel) {
  const int64_t count = a.samples * a.inner;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kBlockThreads)
    sum += LoadFloat(a.x, a.dtype, ChannelElement(a, by_inner, channel, i));
  const float mean = static_cast<float>(BlockSum(sum) / static_cast<double>(count));
  double squares = 0;
  for (int64_t i = threadIdx.x; i < count; i += kBlockThreads) {
    const double centred = LoadFloat(a.x, a.dtype, ChannelElement(a, by_inner, channel, i)) - mean;
    squares += centred * centred;
  }
  const double variance = BlockSum(squares) / static_cast<double>(count);
  return {mean, variance, static_cast<float>(1 / sqrt(variance + static_cast<double>(a.epsilon)))};
}

__device__ ChannelStatistics RunningStatistics(const BatchNormalizationArguments& a, int64_t channel) {
  const double variance = a.variance[channel];
  return {a.mean[channel], variance, static_cast<float>(1 / sqrt(variance + static_cast<double>(a.epsilon)))};
}

__device__ float Moved(float running, double batch, double momentum) {
  return static_cast<float>(static_cast<double>(running) * momentum + batch * (1 - momentum));
}

__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    BatchNormalization(BatchNormalizationArguments a, Divisor by_inner) {
  for (int64_t channel = blockIdx.x; channel < a.channels; channel += gridDim.x) {
    const ChannelStatistics s = a.training ? BatchStatistics(a, by_inner, channel) : RunningStatistics(a, channel);
    const float factor = static_cast<float>(static_cast<double>(s.factor) * a.scale[channel]);
    const float bias = a.bias[channel];
    for (int64_t i = threadIdx.x; i < a.samples * a.inner; i += kBlockThreads) {
      const int64_t at = ChannelElement(a, by_inner, channel, i);
      StoreFloat(a.y, a.dtype, at, (LoadFloat(a.x, a.dtype, at) - s.mean) * factor + bias);
    }
    if (threadIdx.x != 0 || !a.training) continue;
    if (a.mean_new != nullptr) a.mean_new[channel] = Moved(a.mean[channel], s.mean, a.momentum);
    if (a.variance_new != nullptr) a.variance_new[channel] = Moved(a.variance[channel], s.variance, a.momentum);
  }
}

// With batch statistics dx = scale factor (dy - mean dy - xc factor^2 mean(dy xc)), else dx = scale factor dy.
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    BatchNormalizationGradient(BatchNormalizationArguments a, Divisor by_inner) {
  const int64_t count = a.samples * a.inner;
  for (int64_t channel = blockIdx.x; channel < a.channels; channel += gridDim.x) {
    const bool batch = a.mean == nullptr;
    const ChannelStatistics s = batch ? BatchStatistics(a, by_inner, channel) : RunningStatistics(a, channel);
    double sum = 0;
    double dot = 0;
    for (int64_t i = threadIdx.x; i < count; i += kBlockThreads) {
      const int64_t at = ChannelElement(a, by_inner, channel, i);
      const double dy = LoadFloat(a.dy, a.dtype, at);
      sum += dy;
      dot += dy * (LoadFloat(a.x, a.dtype, at) - s.mean);
    }
    sum = BlockSum(sum);
    dot = BlockSum(dot);
    const double factor = s.factor;
    const double slope = a.scale[channel] * factor;
    const double share = batch ? slope / static_cast<double>(count) : 0;
    const float shift = static_cast<float>(share * sum);
    const float tilt = static_cast<float>(share * factor * factor * dot);
    for (int64_t i = threadIdx.x; i < count; i += kBlockThreads) {
      const int64_t at = ChannelElement(a, by_inner, channel, i);
      const float centred = LoadFloat(a.x, a.dtype, at) - s.mean;
      StoreFloat(a.dx, a.dtype, at, static_cast<float>(slope) * LoadFloat(a.dy, a.dtype, at) - shift - centred * tilt);
    }
    if (threadIdx.x != 0) continue;
    if (a.dscale != nullptr) a.dscale[channel] = static_cast<float>(dot * factor);
    if (a.dbias != nullptr) a.dbias[channel] = static_cast<float>(sum);
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchBatchNormalization(const BatchNormalizationArguments& a, cudaStream_t stream) {
  if (a.channels * a.samples * a.inner == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::BatchNormalization, RowBlocks(a.channels), kBlockThreads, 0, stream, a,
                          Divisor(a.inner));
}

cudaError_t LaunchBatchNormalizationGradient(const BatchNormalizationArguments& a, cudaStream_t stream) {
  if (a.channels * a.samples * a.inner == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::BatchNormalizationGradient, RowBlocks(a.channels), kBlockThreads, 0, stream, a,
                          Divisor(a.inner));
}

}  // namespace onnxtrain
