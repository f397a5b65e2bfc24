// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/simulated_cuda/cublaslt_state.h"

namespace simulated_cublaslt {
namespace {

double Load(const void* data, cudaDataType_t type, int64_t index) {
  switch (type) {
    case CUDA_R_16BF:
      return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(data)[index]));
    case CUDA_R_16F:
      return static_cast<double>(__half2float(static_cast<const __half*>(data)[index]));
    case CUDA_R_64F:
      return static_cast<const double*>(data)[index];
    default:
      return static_cast<double>(static_cast<const float*>(data)[index]);
  }
}

template <typename Sum>
void Store(void* data, cudaDataType_t type, int64_t index, Sum value) {
  switch (type) {
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(data)[index] = __float2bfloat16(static_cast<float>(value));
      return;
    case CUDA_R_16F:
      static_cast<__half*>(data)[index] = __float2half(static_cast<float>(value));
      return;
    case CUDA_R_64F:
      static_cast<double*>(data)[index] = static_cast<double>(value);
      return;
    default:
      static_cast<float*>(data)[index] = static_cast<float>(value);
  }
}

// What a tensor core sees of a float: ten bits after the point, the rest rounded to even.
float ToTf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

// op(X), `rows` by `columns`, row by row.
template <typename Sum>
std::vector<Sum> Packed(const void* data, const Matrix& x, cublasOperation_t operation, int64_t batch, int64_t rows,
                        int64_t columns, bool tf32) {
  std::vector<Sum> packed(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t at = operation == CUBLAS_OP_N ? i + j * x.leading : j + i * x.leading;
      const Sum value = static_cast<Sum>(Load(data, x.type, batch * x.batch_stride + at));
      packed[static_cast<size_t>(i * columns + j)] = tf32 ? static_cast<Sum>(ToTf32(static_cast<float>(value))) : value;
    }
  }
  return packed;
}

constexpr int64_t kBlockRows = 512;
constexpr int64_t kBlockColumns = 4;

// Of a block of D, in the order of k: sums[j][i] += A[i, k] B[k, j].
template <typename Sum>
void AddUp(const std::vector<Sum>& a, const std::vector<Sum>& b, const Product& p, int64_t row, int64_t rows,
           int64_t column, int64_t columns, Sum (*sums)[kBlockRows]) {
  for (int64_t j = 0; j < columns; ++j) std::fill_n(sums[j], rows, Sum{0});
  for (int64_t k = 0; k < p.depth; ++k) {
    const Sum* from = a.data() + k * p.d.rows + row;
    for (int64_t j = 0; j < columns; ++j) {
      const Sum factor = b[static_cast<size_t>(k * p.d.columns + column + j)];
      for (int64_t i = 0; i < rows; ++i) sums[j][i] += from[i] * factor;
    }
  }
}

template <typename Sum>
void Finish(const Product& p, int64_t batch, int64_t i, int64_t j, Sum sum) {
  Sum value = static_cast<Sum>(p.alpha) * sum;
  if (p.beta != 0) {
    const int64_t at = batch * p.c.batch_stride + i + j * p.c.leading;
    value += static_cast<Sum>(p.beta) * static_cast<Sum>(Load(p.c_data, p.c.type, at));
  }
  if (p.operation.epilogue == CUBLASLT_EPILOGUE_BIAS) value += static_cast<Sum>(Load(p.operation.bias, p.d.type, i));
  Store(p.d_data, p.d.type, batch * p.d.batch_stride + i + j * p.d.leading, value);
}

template <typename Sum>
void RunIn(const Product& p) {
  const bool tf32 = p.operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  // A^T has the elements of a column of op(A) beside each other.
  const cublasOperation_t flipped = p.operation.transpose_a == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N;
  std::vector<Sum> block(static_cast<size_t>(kBlockColumns * kBlockRows));
  const auto sums = reinterpret_cast<Sum(*)[kBlockRows]>(block.data());
  for (int64_t batch = 0; batch < p.d.batch; ++batch) {
    const auto a = Packed<Sum>(p.a_data, p.a, flipped, batch, p.depth, p.d.rows, tf32);
    const auto b = Packed<Sum>(p.b_data, p.b, p.operation.transpose_b, batch, p.depth, p.d.columns, tf32);
    for (int64_t row = 0; row < p.d.rows; row += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, p.d.rows - row);
      for (int64_t column = 0; column < p.d.columns; column += kBlockColumns) {
        const int64_t columns = std::min(kBlockColumns, p.d.columns - column);
        AddUp(a, b, p, row, rows, column, columns, sums);
        for (int64_t j = 0; j < columns; ++j) {
          for (int64_t i = 0; i < rows; ++i) Finish(p, batch, row + i, column + j, sums[j][i]);
        }
      }
    }
  }
}

}  // namespace

size_t BytesOf(cudaDataType_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

size_t ExtentOf(const Matrix& matrix) {
  const int64_t elements =
      (matrix.batch - 1) * matrix.batch_stride + (matrix.columns - 1) * matrix.leading + matrix.rows;
  return static_cast<size_t>(elements) * BytesOf(matrix.type);
}

void Run(const Product& product) {
  if (product.workspace_bytes > 0) std::memset(product.workspace, 0xff, product.workspace_bytes);
  if (product.operation.compute == CUBLAS_COMPUTE_64F) {
    RunIn<double>(product);
  } else {
    RunIn<float>(product);
  }
}

}  // namespace simulated_cublaslt
