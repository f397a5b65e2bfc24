// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/divisor.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/group_normalization.h"
#include "cuda_ops/kernels/row_reduce.h"

namespace onnxtrain {
namespace cuda_kernels {

struct GroupStatistics {
  float mean;
  float factor;  // 1 / standard deviation
};

// The run of `length` elements from `start`, in two passes: what is left of the mean does not cancel.
template <typename Team>
__device__ GroupStatistics GroupStatisticsOf(const GroupNormalizationArguments& a, int64_t start, int64_t length) {
  constexpr int64_t kStep = kBlockThreads / Team::kRowsPerBlock;
  double sum = 0;
  for (int64_t i = Team::Thread(); i < length; i += kStep) sum += LoadFloat(a.x, a.dtype, start + i);
  const auto mean = static_cast<float>(Team::template Reduce<Plus>(sum) / static_cast<double>(length));
  double squares = 0;
  for (int64_t i = Team::Thread(); i < length; i += kStep) {
    const double centred = LoadFloat(a.x, a.dtype, start + i) - mean;
    squares += centred * centred;
  }
  const double variance = Team::template Reduce<Plus>(squares) / static_cast<double>(length);
  return {mean, static_cast<float>(1 / sqrt(variance + a.epsilon))};
}

// A team a group.
template <typename Team>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    GroupNormalization(GroupNormalizationArguments a, Divisor by_groups, Divisor by_inner) {
  const int64_t per_group = by_groups.Quotient(a.channels);
  const int64_t length = per_group * a.inner;
  for (int64_t row = Team::FirstRow(); row < a.samples * a.groups; row += Team::RowStride()) {
    int64_t sample = row;
    const int64_t first = by_groups.Split(&sample) * per_group;
    const int64_t start = row * length;
    const GroupStatistics s = GroupStatisticsOf<Team>(a, start, length);
    for (int64_t i = Team::Thread(); i < length; i += kBlockThreads / Team::kRowsPerBlock) {
      const int64_t channel = first + by_inner.Quotient(i);
      const float factor = s.factor * LoadFloat(a.scale, a.parameter_dtype, channel);
      const float bias = LoadFloat(a.bias, a.parameter_dtype, channel);
      StoreFloat(a.y, a.dtype, start + i, (LoadFloat(a.x, a.dtype, start + i) - s.mean) * factor + bias);
    }
  }
}

// Of the gradient, for each channel of each sample.
struct ChannelSums {
  double dscale;
  double dbias;
};
// For each group of each sample: dx = factor scale dy - shift - (x - mean) tilt.
struct GroupTerms {
  float mean;
  float factor;
  float shift;
  float tilt;
};
struct GroupGradientWorkspace {
  ChannelSums* sums;  // [samples, channels]
  GroupTerms* terms;  // [samples, groups]
};

template <typename Team>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    GroupStatisticsOnly(GroupNormalizationArguments a, GroupGradientWorkspace w, int64_t length) {
  for (int64_t row = Team::FirstRow(); row < a.samples * a.groups; row += Team::RowStride()) {
    const GroupStatistics s = GroupStatisticsOf<Team>(a, row * length, length);
    if (Team::Thread() == 0) w.terms[row] = {s.mean, s.factor, 0, 0};
  }
}

// A team a channel of a sample.
template <typename Team>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    GroupChannelSums(GroupNormalizationArguments a, GroupGradientWorkspace w, Divisor by_channels_of_group) {
  for (int64_t row = Team::FirstRow(); row < a.samples * a.channels; row += Team::RowStride()) {
    const GroupTerms terms = w.terms[by_channels_of_group.Quotient(row)];
    double sum = 0;
    double dot = 0;
    for (int64_t i = Team::Thread(); i < a.inner; i += kBlockThreads / Team::kRowsPerBlock) {
      const double dy = LoadFloat(a.dy, a.dtype, row * a.inner + i);
      sum += dy;
      dot += dy * (LoadFloat(a.x, a.dtype, row * a.inner + i) - terms.mean);
    }
    sum = Team::template Reduce<Plus>(sum);
    dot = Team::template Reduce<Plus>(dot);
    if (Team::Thread() == 0) w.sums[row] = {dot * terms.factor, sum};
  }
}

// The mean of g, and factor^2 times the mean of g (x - mean), for g = dy scale; both times the factor.
__global__ void __launch_bounds__(kBlockThreads)
    GroupGradientTerms(GroupNormalizationArguments a, GroupGradientWorkspace w, Divisor by_groups) {
  const int64_t per_group = by_groups.Quotient(a.channels);
  for (int64_t row = FirstElement(); row < a.samples * a.groups; row += ElementStride()) {
    int64_t sample = row;
    const int64_t first = by_groups.Split(&sample) * per_group;
    double sum = 0;
    double dot = 0;
    for (int64_t i = 0; i < per_group; ++i) {
      const ChannelSums sums = w.sums[row * per_group + i];
      const double scale = LoadFloat(a.scale, a.parameter_dtype, first + i);
      sum += scale * sums.dbias;
      dot += scale * sums.dscale;
    }
    const double factor = w.terms[row].factor;
    const double share = factor / static_cast<double>(per_group * a.inner);
    w.terms[row].shift = static_cast<float>(share * sum);
    w.terms[row].tilt = static_cast<float>(share * factor * dot);
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    GroupParameterGradient(GroupNormalizationArguments a, GroupGradientWorkspace w) {
  for (int64_t channel = FirstElement(); channel < a.channels; channel += ElementStride()) {
    ChannelSums total = {0, 0};
    for (int64_t sample = 0; sample < a.samples; ++sample) {
      const ChannelSums sums = w.sums[sample * a.channels + channel];
      total.dscale += sums.dscale;
      total.dbias += sums.dbias;
    }
    if (a.dscale != nullptr) StoreFloat(a.dscale, a.parameter_dtype, channel, static_cast<float>(total.dscale));
    if (a.dbias != nullptr) StoreFloat(a.dbias, a.parameter_dtype, channel, static_cast<float>(total.dbias));
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    GroupInputGradient(GroupNormalizationArguments a, GroupGradientWorkspace w, Divisor by_inner, Divisor by_channels,
                       Divisor by_channels_of_group) {
  const int64_t total = a.samples * a.channels * a.inner;
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    int64_t sample = by_inner.Quotient(i);
    const GroupTerms terms = w.terms[by_channels_of_group.Quotient(sample)];
    const int64_t channel = by_channels.Split(&sample);
    const float slope = terms.factor * LoadFloat(a.scale, a.parameter_dtype, channel);
    const float centred = LoadFloat(a.x, a.dtype, i) - terms.mean;
    StoreFloat(a.dx, a.dtype, i, slope * LoadFloat(a.dy, a.dtype, i) - terms.shift - centred * terms.tilt);
  }
}

cudaError_t LaunchGroupSums(const GroupNormalizationArguments& a, const GroupGradientWorkspace& w,
                            cudaStream_t stream) {
  const int64_t per_group = a.channels / a.groups;
  const int64_t length = per_group * a.inner;
  const int64_t rows = a.samples * a.groups;
  const Divisor by_channels_of_group(per_group);
  cudaError_t error = ONNXTRAIN_LAUNCH_ROWS(GroupStatisticsOnly, rows, length, stream, a, w, length);
  if (error != cudaSuccess) return error;
  error = ONNXTRAIN_LAUNCH_ROWS(GroupChannelSums, a.samples * a.channels, a.inner, stream, a, w, by_channels_of_group);
  if (error != cudaSuccess) return error;
  return ONNXTRAIN_LAUNCH(GroupGradientTerms, ElementBlocks(rows), kBlockThreads, 0, stream, a, w, Divisor(a.groups));
}

}  // namespace cuda_kernels

cudaError_t LaunchGroupNormalization(const GroupNormalizationArguments& a, cudaStream_t stream) {
  if (a.samples * a.channels * a.inner == 0) return cudaSuccess;
  const int64_t length = a.channels / a.groups * a.inner;
  return ONNXTRAIN_LAUNCH_ROWS(cuda_kernels::GroupNormalization, a.samples * a.groups, length, stream, a,
                               Divisor(a.groups), Divisor(a.inner));
}

size_t GroupNormalizationGradientBytes(const GroupNormalizationArguments& a) {
  return static_cast<size_t>(a.samples * a.channels) * sizeof(cuda_kernels::ChannelSums) +
         static_cast<size_t>(a.samples * a.groups) * sizeof(cuda_kernels::GroupTerms);
}

// dx comes last: it may lie where dy or x does, which the sums read. Without elements the parameters' sums are of none.
cudaError_t LaunchGroupNormalizationGradient(const GroupNormalizationArguments& given, cudaStream_t stream) {
  GroupNormalizationArguments a = given;
  if (a.inner == 0) a.samples = 0;
  if (a.channels == 0) return cudaSuccess;
  auto* const sums = reinterpret_cast<cuda_kernels::ChannelSums*>(a.workspace);
  const cuda_kernels::GroupGradientWorkspace w{
      sums, reinterpret_cast<cuda_kernels::GroupTerms*>(sums + a.samples * a.channels)};
  if (a.samples > 0) {
    const cudaError_t error = cuda_kernels::LaunchGroupSums(a, w, stream);
    if (error != cudaSuccess) return error;
  }
  if (a.dscale != nullptr || a.dbias != nullptr) {
    const cudaError_t error = ONNXTRAIN_LAUNCH(cuda_kernels::GroupParameterGradient, ElementBlocks(a.channels),
                                               kBlockThreads, 0, stream, a, w);
    if (error != cudaSuccess) return error;
  }
  if (a.samples == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::GroupInputGradient, ElementBlocks(a.samples * a.channels * a.inner),
                          kBlockThreads, 0, stream, a, w, Divisor(a.inner), Divisor(a.channels),
                          Divisor(a.channels / a.groups));
}

}  // namespace onnxtrain
