// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/normalization.h"
#include "cuda_ops/kernels/row_reduce.h"

namespace onnxtrain {
namespace cuda_kernels {

struct RowStatistics {
  float mean;
  float factor;
};

// In two passes: the sum of squares of what is left of the mean does not cancel.
template <typename Team>
__device__ RowStatistics StatisticsOf(const void* x, DType dtype, int64_t start, int64_t length, float epsilon,
                                      bool rms) {
  float mean = 0;
  if (!rms) {
    for (int64_t i = Team::Thread(); i < length; i += blockDim.x / Team::kRowsPerBlock)
      mean += LoadFloat(x, dtype, start + i);
    mean = Team::template Reduce<Plus>(mean) / static_cast<float>(length);
  }
  float squares = 0;
  for (int64_t i = Team::Thread(); i < length; i += blockDim.x / Team::kRowsPerBlock) {
    const float centred = LoadFloat(x, dtype, start + i) - mean;
    squares += centred * centred;
  }
  squares = Team::template Reduce<Plus>(squares);
  return {mean, 1.0f / sqrtf(squares / static_cast<float>(length) + epsilon)};
}

template <typename Team>
__global__ void __launch_bounds__(kBlockThreads) RowNormalization(RowNormalizationArguments a) {
  for (int64_t row = Team::FirstRow(); row < a.rows; row += Team::RowStride()) {
    const int64_t start = row * a.length;
    const RowStatistics s = StatisticsOf<Team>(a.x, a.dtype, start, a.length, a.epsilon, a.rms);
    for (int64_t i = Team::Thread(); i < a.length; i += blockDim.x / Team::kRowsPerBlock) {
      const float bias = a.bias == nullptr ? 0.0f : LoadFloat(a.bias, a.parameter_dtype, i);
      const float normal = (LoadFloat(a.x, a.dtype, start + i) - s.mean) * s.factor;
      StoreFloat(a.y, a.dtype, start + i, normal * LoadFloat(a.scale, a.parameter_dtype, i) + bias);
    }
    if (Team::Thread() != 0) continue;
    if (a.mean != nullptr) a.mean[row] = s.mean;
    if (a.factor != nullptr) a.factor[row] = s.factor;
  }
}

template <typename Team>
__global__ void __launch_bounds__(kBlockThreads) RowStatisticsOnly(RowNormalizationGradientArguments a) {
  for (int64_t row = Team::FirstRow(); row < a.rows; row += Team::RowStride()) {
    const RowStatistics s = StatisticsOf<Team>(a.x, a.dtype, row * a.length, a.length, a.epsilon, a.rms);
    if (Team::Thread() != 0) continue;
    a.workspace[2 * row] = s.mean;
    a.workspace[2 * row + 1] = s.factor;
  }
}

// dx = factor (g - mean g - xc factor^2 mean(g xc)) for g = dy scale. dx may be dy or x.
template <typename Team>
__global__ void __launch_bounds__(kBlockThreads) RowGradient(RowNormalizationGradientArguments a) {
  const float count = static_cast<float>(a.length);
  for (int64_t row = Team::FirstRow(); row < a.rows; row += Team::RowStride()) {
    const int64_t start = row * a.length;
    const float mean = a.workspace[2 * row];
    const float factor = a.workspace[2 * row + 1];
    float sum = 0;
    float dot = 0;
    for (int64_t i = Team::Thread(); i < a.length; i += blockDim.x / Team::kRowsPerBlock) {
      const float g = LoadFloat(a.dy, a.dtype, start + i) * LoadFloat(a.scale, a.parameter_dtype, i);
      sum += g;
      dot += g * (LoadFloat(a.x, a.dtype, start + i) - mean);
    }
    sum = Team::template Reduce<Plus>(sum);
    dot = Team::template Reduce<Plus>(dot);
    const float shift = a.rms ? 0.0f : sum / count;
    const float slope = factor * factor * dot / count;
    for (int64_t i = Team::Thread(); i < a.length; i += blockDim.x / Team::kRowsPerBlock) {
      const float g = LoadFloat(a.dy, a.dtype, start + i) * LoadFloat(a.scale, a.parameter_dtype, i);
      const float centred = LoadFloat(a.x, a.dtype, start + i) - mean;
      StoreFloat(a.dx, a.dtype, start + i, factor * (g - shift - centred * slope));
    }
  }
}

inline constexpr int64_t kChunkRows = 64;

__host__ __device__ inline int64_t ChunksOf(int64_t rows) { return (rows + kChunkRows - 1) / kChunkRows; }

// partial[chunk][0][column] = sum of dy normal, partial[chunk][1][column] = sum of dy, over the rows of the chunk.
__global__ void __launch_bounds__(kBlockThreads) ColumnPartials(RowNormalizationGradientArguments a, float* partial) {
  for (int64_t chunk = blockIdx.y; chunk < ChunksOf(a.rows); chunk += gridDim.y) {
    const int64_t end = (chunk + 1) * kChunkRows < a.rows ? (chunk + 1) * kChunkRows : a.rows;
    for (int64_t column = FirstElement(); column < a.length; column += ElementStride()) {
      float scaled = 0;
      float plain = 0;
      for (int64_t row = chunk * kChunkRows; row < end; ++row) {
        const float dy = LoadFloat(a.dy, a.dtype, row * a.length + column);
        const float centred = LoadFloat(a.x, a.dtype, row * a.length + column) - a.workspace[2 * row];
        scaled += dy * centred * a.workspace[2 * row + 1];
        plain += dy;
      }
      partial[(2 * chunk) * a.length + column] = scaled;
      partial[(2 * chunk + 1) * a.length + column] = plain;
    }
  }
}

__global__ void __launch_bounds__(kBlockThreads) ColumnSums(RowNormalizationGradientArguments a, const float* partial) {
  for (int64_t column = FirstElement(); column < a.length; column += ElementStride()) {
    double scaled = 0;
    double plain = 0;
    for (int64_t chunk = 0; chunk < ChunksOf(a.rows); ++chunk) {
      scaled += partial[(2 * chunk) * a.length + column];
      plain += partial[(2 * chunk + 1) * a.length + column];
    }
    if (a.dscale != nullptr) StoreFloat(a.dscale, a.parameter_dtype, column, static_cast<float>(scaled));
    if (a.dbias != nullptr) StoreFloat(a.dbias, a.parameter_dtype, column, static_cast<float>(plain));
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchRowNormalization(const RowNormalizationArguments& a, cudaStream_t stream) {
  if (a.rows * a.length == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH_ROWS(cuda_kernels::RowNormalization, a.rows, a.length, stream, a);
}

int64_t RowNormalizationGradientFloats(int64_t rows, int64_t length) {
  return 2 * rows + 2 * cuda_kernels::ChunksOf(rows) * length;
}

// dx comes last: it may lie where dy or x does, which the columns read.
cudaError_t LaunchRowNormalizationGradient(const RowNormalizationGradientArguments& a, cudaStream_t stream) {
  if (a.length == 0) return cudaSuccess;
  const bool columns = a.dscale != nullptr || a.dbias != nullptr;
  float* const partial = a.workspace + 2 * a.rows;
  if (a.rows > 0) {
    const cudaError_t error = ONNXTRAIN_LAUNCH_ROWS(cuda_kernels::RowStatisticsOnly, a.rows, a.length, stream, a);
    if (error != cudaSuccess) return error;
  }
  if (a.rows > 0 && columns) {
    const int64_t chunks = cuda_kernels::ChunksOf(a.rows);
    const dim3 grid(ElementBlocks(a.length), static_cast<unsigned>(chunks < 65535 ? chunks : 65535));
    const cudaError_t error =
        ONNXTRAIN_LAUNCH(cuda_kernels::ColumnPartials, grid, kBlockThreads, 0, stream, a, partial);
    if (error != cudaSuccess) return error;
  }
  if (columns) {
    const cudaError_t error =
        ONNXTRAIN_LAUNCH(cuda_kernels::ColumnSums, ElementBlocks(a.length), kBlockThreads, 0, stream, a, partial);
    if (error != cudaSuccess) return error;
  }
  if (a.rows == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH_ROWS(cuda_kernels::RowGradient, a.rows, a.length, stream, a);
}

}  // namespace onnxtrain
