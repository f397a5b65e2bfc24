// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/reduction.h"
#include "cuda_ops/kernels/row_reduce.h"
#include "runtime/math/exponential.h"
#include "runtime/math/functions.h"

namespace onnxtrain {
namespace cuda_kernels {

__device__ float Neutral(ReduceFunction function) {
  if (function == ReduceFunction::kMax) return -__builtin_huge_valf();
  if (function == ReduceFunction::kMin) return __builtin_huge_valf();
  return 0.0f;
}

template <typename T>
__device__ T Combined(ReduceFunction function, T a, T b) {
  if (function == ReduceFunction::kMax) return math::Max(a, b);
  if (function == ReduceFunction::kMin) return math::Min(a, b);
  return a + b;
}

__device__ float Taken(const ReductionArguments& a, int64_t at) {
  const float x = LoadFloat(a.x, a.dtype, at);
  if (a.function == ReduceFunction::kL1) return fabsf(x);
  return a.function == ReduceFunction::kSumSquare || a.function == ReduceFunction::kL2 ? x * x : x;
}

__device__ void Store(const ReductionArguments& a, int64_t index, double value) {
  if (a.function == ReduceFunction::kMean) value /= static_cast<double>(a.reduced.count);
  if (a.function == ReduceFunction::kL2) value = sqrt(value);
  if (a.function == ReduceFunction::kLogSum) value = log(value);
  StoreFloat(a.y, a.y_dtype, index, static_cast<float>(value));
}

struct CombineSum {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return a + b;
  }
  template <typename T>
  __device__ static T Neutral() {
    return T(0);
  }
};
struct CombineLeast {
  template <typename T>
  __device__ static T Of(T a, T b) {
    return math::Min(a, b);
  }
  template <typename T>
  __device__ static T Neutral() {
    return T(__builtin_huge_valf());
  }
};

template <typename Team>
__device__ double TeamReduce(ReduceFunction function, double value) {
  if (function == ReduceFunction::kMax) return Team::template Reduce<Greater>(value);
  if (function == ReduceFunction::kMin) return Team::template Reduce<CombineLeast>(value);
  return Team::template Reduce<CombineSum>(value);
}

// A team a result; its threads take neighbours.
template <typename Team>
__global__ void __launch_bounds__(kBlockThreads) ReduceRows(ReductionArguments a) {
  for (int64_t row = Team::FirstRow(); row < a.kept.count; row += Team::RowStride()) {
    const int64_t start = a.kept.At(row).at[0];
    double value = Neutral(a.function);
    for (int64_t i = Team::Thread(); i < a.reduced.count; i += blockDim.x / Team::kRowsPerBlock) {
      value = Combined<double>(a.function, value, Taken(a, start + a.reduced.At(i).at[0]));
    }
    value = TeamReduce<Team>(a.function, value);
    if (Team::Thread() == 0) Store(a, row, value);
  }
}

// The logarithm of a sum of exponentials, relative to the largest so that none overflows. A team a result, which reads
// twice.
template <typename Team>
__global__ void __launch_bounds__(kBlockThreads) ReduceLogSumExp(ReductionArguments a) {
  constexpr int64_t kStep = kBlockThreads / Team::kRowsPerBlock;
  for (int64_t row = Team::FirstRow(); row < a.kept.count; row += Team::RowStride()) {
    const int64_t start = a.kept.At(row).at[0];
    float largest = -__builtin_huge_valf();
    for (int64_t i = Team::Thread(); i < a.reduced.count; i += kStep) {
      largest = Greater::Of(largest, LoadFloat(a.x, a.dtype, start + a.reduced.At(i).at[0]));
    }
    largest = Team::template Reduce<Greater>(largest);
    double sum = 0;
    for (int64_t i = Team::Thread(); i < a.reduced.count; i += kStep) {
      const float x = LoadFloat(a.x, a.dtype, start + a.reduced.At(i).at[0]);
      sum += x == largest ? 1.0f : math::Exp(x - largest);  // an infinite one, too
    }
    sum = Team::template Reduce<CombineSum>(sum);
    if (Team::Thread() == 0) {
      StoreFloat(a.y, a.y_dtype, row, static_cast<float>(a.reduced.count == 0 ? largest : largest + log(sum)));
    }
  }
}

// A thread a result and part: neighbouring threads take neighbouring results.
__global__ void __launch_bounds__(kBlockThreads) ReduceColumns(ReductionArguments a, int64_t parts) {
  const int64_t part = blockIdx.y;
  const int64_t begin = part * kReductionPart;
  const int64_t end = begin + kReductionPart < a.reduced.count ? begin + kReductionPart : a.reduced.count;
  for (int64_t index = FirstElement(); index < a.kept.count; index += ElementStride()) {
    const int64_t start = a.kept.At(index).at[0];
    float value = Neutral(a.function);
    for (int64_t i = begin; i < end; ++i) value = Combined(a.function, value, Taken(a, start + a.reduced.At(i).at[0]));
    if (parts == 1) {
      Store(a, index, value);
    } else {
      a.partial[part * a.kept.count + index] = value;
    }
  }
}

__global__ void __launch_bounds__(kBlockThreads) ReduceParts(ReductionArguments a, int64_t parts) {
  for (int64_t index = FirstElement(); index < a.kept.count; index += ElementStride()) {
    double value = a.partial[index];
    for (int64_t part = 1; part < parts; ++part) {
      value = Combined(a.function, value, a.partial[part * a.kept.count + index]);
    }
    Store(a, index, value);
  }
}

int64_t PartsOf(const ReductionArguments& a) {
  const int64_t parts = (a.reduced.count + kReductionPart - 1) / kReductionPart;
  return parts < 1 ? 1 : parts;
}

}  // namespace cuda_kernels

int64_t ReductionPartials(const ReductionArguments& a) {
  const int64_t parts = cuda_kernels::PartsOf(a);
  return a.rows || a.function == ReduceFunction::kLogSumExp || parts == 1 ? 0 : parts * a.kept.count;
}

cudaError_t LaunchReduction(const ReductionArguments& a, cudaStream_t stream) {
  if (a.kept.count == 0) return cudaSuccess;
  if (a.function == ReduceFunction::kLogSumExp) {
    return ONNXTRAIN_LAUNCH_ROWS(cuda_kernels::ReduceLogSumExp, a.kept.count, a.reduced.count, stream, a);
  }
  if (a.rows) return ONNXTRAIN_LAUNCH_ROWS(cuda_kernels::ReduceRows, a.kept.count, a.reduced.count, stream, a);
  const int64_t parts = cuda_kernels::PartsOf(a);
  if (parts > 65535) return cudaErrorInvalidConfiguration;
  const dim3 grid(ElementBlocks(a.kept.count), static_cast<unsigned>(parts));
  const cudaError_t error = ONNXTRAIN_LAUNCH(cuda_kernels::ReduceColumns, grid, kBlockThreads, 0, stream, a, parts);
  if (error != cudaSuccess || parts == 1) return error;
  return ONNXTRAIN_LAUNCH(cuda_kernels::ReduceParts, ElementBlocks(a.kept.count), kBlockThreads, 0, stream, a, parts);
}

}  // namespace onnxtrain
