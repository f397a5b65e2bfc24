// SPDX-License-Identifier: Apache-2.0
// What the simulated cuBLASLt keeps inside the library's opaque structs, and one product as it is carried out.
#ifndef ONNXTRAIN_TESTS_SIMULATED_CUDA_CUBLASLT_STATE_H_
#define ONNXTRAIN_TESTS_SIMULATED_CUDA_CUBLASLT_STATE_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

struct cublasLtContext {
  int device;  // that was current when it was made
};

namespace simulated_cublaslt {

struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transpose_a;
  cublasOperation_t transpose_b;
  cublasLtEpilogue_t epilogue;
  const void* bias;
};
// Column by column.
struct Matrix {
  cudaDataType_t type;
  int64_t rows;
  int64_t columns;
  int64_t leading;
  int32_t batch;
  int64_t batch_stride;
};
struct Preference {
  size_t workspace;
  uint32_t alignment[4];  // of A, B, C, D
};
// Serves the one product whose digest it holds.
struct Algorithm {
  uint64_t magic;
  uint64_t product;
  uint64_t workspace;
  uint32_t alignment[4];
};
inline constexpr uint64_t kMagic = 0x73696d756c617465;
static_assert(sizeof(Operation) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Matrix) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

// D = alpha op(A) op(B) + beta C (+ bias).
struct Product {
  Operation operation;
  Matrix a, b, c, d;
  double alpha, beta;
  const void* a_data;
  const void* b_data;
  const void* c_data;
  void* d_data;
  int64_t depth;
  void* workspace;
  size_t workspace_bytes;
};

size_t BytesOf(cudaDataType_t type);
// Bytes from a matrix's first element to behind its last, all of the batch.
size_t ExtentOf(const Matrix& matrix);
// Sums in one fixed order, in float, or in double for double. Leaves garbage in the workspace.
void Run(const Product& product);

}  // namespace simulated_cublaslt

#endif  // ONNXTRAIN_TESTS_SIMULATED_CUDA_CUBLASLT_STATE_H_
