// SPDX-License-Identifier: Apache-2.0
// A product of matrices, or of a batch of them, by cuBLASLt: descriptors are made and the algorithm is chosen at
// creation, so that Run only enqueues. Our row-major C = A B is the library's column-major C^T = B^T A^T.
#ifndef ONNXTRAIN_CUDA_OPS_CUBLASLT_PRODUCT_H_
#define ONNXTRAIN_CUDA_OPS_CUBLASLT_PRODUCT_H_

#include <cublasLt.h>

#include <memory>
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
    DType dtype = DType::kFloat;  // float, bfloat16, float16; sums are float
    bool float_result = false;    // C is float whatever A and B are
    double alpha = 1;
    double beta = 0;        // C = alpha A B + beta C
    bool bias_row = false;  // a row of bias is added to every row by the epilogue
  };
  // InvalidModel where no matrix of a product lies in rows or columns as the library wants; Internal with the library's
  // words where it has no algorithm.
  static StatusOr<std::unique_ptr<CublasLtProduct>> Create(const CudaContext& context, ProductShape shape,
                                                           const Options& options);
  ~CublasLtProduct();

  // 0 to 32 MiB, 256-byte aligned.
  size_t workspace_bytes() const { return workspace_bytes_; }
  // `bias` is [columns] of the dtype; null without bias_row.
  Status Run(const void* a, const void* b, void* c, const void* bias, void* workspace, cudaStream_t stream);

 private:
  // One call of the library: where its matrices begin, in bytes. There is one for every index of the batch axes but the
  // last, which is the library's own.
  struct Offsets {
    size_t a = 0;
    size_t b = 0;
    size_t c = 0;
  };

  CublasLtProduct(const CudaContext& context, const Options& options) : context_(context), options_(options) {}
  Status Describe(const ProductShape& shape);
  DType result_dtype() const { return options_.float_result ? DType::kFloat : options_.dtype; }
  Status DescribeOperation(bool transpose_a, bool transpose_b);
  Status ChooseAlgorithm();
  void SetOffsets(const ProductShape& shape);

  const CudaContext& context_;
  const Options options_;
  bool swapped_ = false;  // a and b
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
  size_t workspace_bytes_ = 0;
  std::vector<Offsets> calls_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CUBLASLT_PRODUCT_H_
