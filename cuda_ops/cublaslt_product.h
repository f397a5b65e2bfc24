// SPDX-License-Identifier: Apache-2.0
// A product of matrices, or of a batch of them, by cuBLASLt: descriptors are made and the algorithm is chosen at
// creation, so that Run only enqueues. Our row-major C = A B is the library's column-major C^T = B^T A^T.
#ifndef ONNXTRAIN_CUDA_OPS_CUBLASLT_PRODUCT_H_
#define ONNXTRAIN_CUDA_OPS_CUBLASLT_PRODUCT_H_

#include <cublasLt.h>

#include <memory>
#include <string>
#include <vector>

#include "cuda_ops/cuda_context.h"
#include "graph/dtype.h"
#include "graph/status.h"
#include "runtime/matrix_geometry.h"

namespace onnxtrain {

// "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED, ..."; `call` names the function.
Status CublasError(cublasStatus_t status, const char* call);

class CublasLtProduct {
 public:
  struct Options {
    DType dtype = DType::kFloat;  // float, bfloat16, float16, whose sums are float, or double
    bool float_result = false;    // C is float whatever A and B are; not for double
    double alpha = 1;
    double beta = 0;        // C = alpha A B + beta C
    bool bias_row = false;  // a row of bias is added to every row by the epilogue; not for double
    // What the addresses of Run are multiples of, in bytes, a power of two; the plan places tensors at 256.
    uint32_t a_alignment = 256;
    uint32_t b_alignment = 256;
    uint32_t c_alignment = 256;
  };
  // Makes the context's GPU current. The algorithm is the one in the context's table, if that still serves, or the
  // library's first choice, which the table then keeps.
  // InvalidModel where no matrix of a product lies in rows or columns as the library wants; Internal with the library's
  // words where it has no algorithm.
  static StatusOr<std::unique_ptr<CublasLtProduct>> Create(const CudaContext& context, ProductShape shape,
                                                           const Options& options);
  ~CublasLtProduct();

  // 0 to 32 MiB, 256-byte aligned.
  size_t workspace_bytes() const { return workspace_bytes_; }
  // The result overlaps no operand. `bias` is [columns] of C's type; null without bias_row.
  Status Run(const void* a, const void* b, void* c, const void* bias, void* workspace, cudaStream_t stream);

  // What the choice of algorithm depends on, in one line: the table's key.
  std::string Key() const;

 private:
  // One call of the library: where its matrices begin, in bytes. There is one for every index of the batch axes but the
  // longest, which is the library's own.
  struct Offsets {
    size_t a = 0;
    size_t b = 0;
    size_t c = 0;
  };
  // A matrix as the library sees it: column by column.
  struct Matrix {
    cublasLtMatrixLayout_t layout = nullptr;
    bool transposed = false;
    int64_t rows = 0;
    int64_t columns = 0;
    int64_t leading = 0;
    int64_t batch_stride = 0;
    uint32_t alignment = 0;  // bytes; of its place in every call
  };

  CublasLtProduct(const CudaContext& context, const Options& options) : context_(context), options_(options) {}
  DType result_dtype() const { return options_.float_result ? DType::kFloat : options_.dtype; }
  Status Describe(const ProductShape& shape);
  Status DescribeMatrix(Matrix& matrix, DType dtype, const MatrixLayout& layout, int64_t rows, int64_t columns);
  Status DescribeOperation();
  void SetOffsets(const ProductShape& shape);
  Status ChooseAlgorithm();
  bool TakeFromTable(const std::string& key);
  Status AskLibrary(cublasLtMatmulPreference_t preference);
  cublasComputeType_t compute_type() const;

  const CudaContext& context_;
  const Options options_;
  bool swapped_ = false;  // a and b
  int32_t batch_ = 1;     // of each call
  cublasLtMatmulDesc_t operation_ = nullptr;
  Matrix a_;
  Matrix b_;
  Matrix c_;
  cublasLtMatmulAlgo_t algorithm_ = {};
  size_t workspace_bytes_ = 0;
  std::vector<Offsets> calls_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CUBLASLT_PRODUCT_H_
