// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/loss.h"
#include "cuda_ops/kernels/row_reduce.h"
#include "runtime/kernel_fault.h"
#include "runtime/math/exponential.h"
#include "runtime/math/functions.h"

namespace onnxtrain {
namespace cuda_kernels {

// The label's class, or -1 where the position does not count.
__device__ int64_t ClassAt(const ClassLossArguments& a, int64_t row, bool report) {
  const int64_t label = a.label_dtype == DType::kInt32 ? static_cast<const int32_t*>(a.labels)[row]
                                                       : static_cast<const int64_t*>(a.labels)[row];
  if (a.ignores && label == a.ignore_index) return -1;
  if (label >= 0 && label < a.classes) return label;
  if (report) ReportFault(a.status_word, static_cast<uint32_t>(DeviceFault::kLabelOutOfRange), a.node_index);
  return -1;
}

__device__ float WeightAt(const ClassLossArguments& a, int64_t label) {
  return a.weights == nullptr ? 1.0f : a.weights[label];
}

struct RowOfScores {
  int64_t start;
  float largest;
  float sum;  // of e^(score - largest)
};

template <typename Team>
__device__ RowOfScores Scan(const ClassLossArguments& a, int64_t row) {
  RowOfScores scan{row / a.inner * a.classes * a.inner + row % a.inner, Greater::Neutral<float>(), 0};
  for (int64_t i = Team::Thread(); i < a.classes; i += blockDim.x / Team::kRowsPerBlock) {
    scan.largest = Greater::Of(scan.largest, LoadFloat(a.scores, a.dtype, scan.start + i * a.inner));
  }
  scan.largest = Team::template Reduce<Greater>(scan.largest);
  for (int64_t i = Team::Thread(); i < a.classes; i += blockDim.x / Team::kRowsPerBlock) {
    scan.sum += math::Exp(LoadFloat(a.scores, a.dtype, scan.start + i * a.inner) - scan.largest);
  }
  scan.sum = Team::template Reduce<Plus>(scan.sum);
  return scan;
}

// Loss and weight of every row into the workspace, and what is wanted of every element.
template <typename Team>
__global__ void __launch_bounds__(kBlockThreads) ClassLossRows(ClassLossArguments a) {
  for (int64_t row = Team::FirstRow(); row < a.outer * a.inner; row += Team::RowStride()) {
    const RowOfScores scan = Scan<Team>(a, row);
    const float log_sum = a.softmax ? scan.largest + math::Log(scan.sum) : 0.0f;
    double uniform = 0;
    for (int64_t i = Team::Thread(); i < a.classes; i += blockDim.x / Team::kRowsPerBlock) {
      const int64_t at = scan.start + i * a.inner;
      const float log_probability = LoadFloat(a.scores, a.dtype, at) - log_sum;
      if (a.log_probability != nullptr) StoreFloat(a.log_probability, a.dtype, at, log_probability);
      if (a.smoothing != 0) uniform -= static_cast<double>(WeightAt(a, i)) * log_probability;
    }
    if (a.smoothing != 0) uniform = Team::template Reduce<Plus>(uniform);
    if (Team::Thread() != 0) continue;
    const int64_t label = ClassAt(a, row, true);
    const double weight = label < 0 ? 0 : WeightAt(a, label);
    double loss = 0;
    if (label >= 0) {
      const float score = LoadFloat(a.scores, a.dtype, scan.start + label * a.inner);
      // Largest and score first: their difference is exact where it matters.
      const double of_label =
          a.softmax ? static_cast<double>(scan.largest - score) + math::Log(scan.sum) : -static_cast<double>(score);
      loss = (1 - static_cast<double>(a.smoothing)) * of_label * weight +
             static_cast<double>(a.smoothing) / static_cast<double>(a.classes) * uniform;
    }
    a.workspace[2 * row] = loss;
    a.workspace[2 * row + 1] = weight;
    if (a.reduction == LossReduction::kNone) StoreFloat(a.loss, a.dtype, row, static_cast<float>(loss));
  }
}

__global__ void __launch_bounds__(kBlockThreads) ClassLossSum(ClassLossArguments a) {
  double loss = 0;
  double weight = 0;
  for (int64_t row = threadIdx.x; row < a.outer * a.inner; row += kBlockThreads) {
    loss += a.workspace[2 * row];
    weight += a.workspace[2 * row + 1];
  }
  loss = BlockSum(loss);
  weight = BlockSum(weight);
  if (threadIdx.x == 0) {
    StoreFloat(a.loss, a.dtype, 0, static_cast<float>(a.reduction == LossReduction::kMean ? loss / weight : loss));
  }
}

// The weights of all counted labels, summed by one block.
__device__ double TotalWeight(const ClassLossArguments& a) {
  double weight = 0;
  for (int64_t row = threadIdx.x; row < a.outer * a.inner; row += kBlockThreads) {
    const int64_t label = ClassAt(a, row, false);
    if (label >= 0) weight += WeightAt(a, label);
  }
  return BlockSum(weight);
}

// One over the total weight; 0 where nothing counts, so that such a batch adds nothing.
__global__ void __launch_bounds__(kBlockThreads) ShareOfOne(ClassLossArguments a) {
  const double weight = TotalWeight(a);
  double each = 0;
  for (int64_t i = threadIdx.x; i < a.classes && a.smoothing != 0 && a.weights != nullptr; i += kBlockThreads) {
    each += a.weights[i];
  }
  each = BlockSum(each);
  if (threadIdx.x != 0) return;
  a.workspace[0] = a.reduction != LossReduction::kMean ? 1 : (weight == 0 ? 0 : 1 / weight);
  a.workspace[1] = a.weights == nullptr ? static_cast<double>(a.classes) : each;
}

// of_label softmax + smoothed / C (sum of weights * softmax - weights), less of_label at the label.
template <typename Team>
__global__ void __launch_bounds__(kBlockThreads) ClassLossGradientRows(ClassLossArguments a) {
  for (int64_t row = Team::FirstRow(); row < a.outer * a.inner; row += Team::RowStride()) {
    const int64_t label = ClassAt(a, row, Team::Thread() == 0);
    const RowOfScores scan = Scan<Team>(a, row);
    const float dloss = LoadFloat(a.dloss, a.dtype, a.reduction == LossReduction::kNone ? row : 0);
    const double scale = label < 0 ? 0 : a.workspace[0] * dloss;
    const float of_label =
        label < 0 ? 0.0f : static_cast<float>((1 - static_cast<double>(a.smoothing)) * scale * WeightAt(a, label));
    const double each = scale * a.smoothing / static_cast<double>(a.classes);
    const float factor = a.softmax ? of_label + static_cast<float>(each * a.workspace[1]) : 0.0f;
    for (int64_t i = Team::Thread(); i < a.classes; i += blockDim.x / Team::kRowsPerBlock) {
      const int64_t at = scan.start + i * a.inner;
      float gradient = 0;
      if (label >= 0) {
        if (a.softmax) {
          const float probability = math::Exp(LoadFloat(a.scores, a.dtype, at) - scan.largest) / scan.sum;
          gradient = factor * probability - static_cast<float>(each) * WeightAt(a, i);
        }
        if (i == label) gradient -= of_label;
      }
      StoreFloat(a.gradient, a.dtype, at, gradient);
    }
  }
}

__global__ void __launch_bounds__(kBlockThreads) CountLabels(ClassLossArguments a, float* count) {
  const double weight = TotalWeight(a);
  if (threadIdx.x == 0) *count = static_cast<float>(weight);
}

}  // namespace cuda_kernels

cudaError_t LaunchClassLoss(const ClassLossArguments& a, cudaStream_t stream) {
  const int64_t rows = a.outer * a.inner;
  if (rows > 0) {
    const cudaError_t error = ONNXTRAIN_LAUNCH_ROWS(cuda_kernels::ClassLossRows, rows, a.classes, stream, a);
    if (error != cudaSuccess) return error;
  }
  if (a.reduction == LossReduction::kNone) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::ClassLossSum, 1, kBlockThreads, 0, stream, a);
}

cudaError_t LaunchClassLossGradient(const ClassLossArguments& a, cudaStream_t stream) {
  const int64_t rows = a.outer * a.inner;
  if (rows * a.classes == 0) return cudaSuccess;
  const cudaError_t error = ONNXTRAIN_LAUNCH(cuda_kernels::ShareOfOne, 1, kBlockThreads, 0, stream, a);
  if (error != cudaSuccess) return error;
  return ONNXTRAIN_LAUNCH_ROWS(cuda_kernels::ClassLossGradientRows, rows, a.classes, stream, a);
}

cudaError_t LaunchCountLabels(const ClassLossArguments& a, float* count, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(cuda_kernels::CountLabels, 1, kBlockThreads, 0, stream, a, count);
}

}  // namespace onnxtrain
