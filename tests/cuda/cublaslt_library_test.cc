// SPDX-License-Identifier: Apache-2.0
// The real cuBLASLt, as far as it goes without a GPU: it takes every description that we make of a product, and refuses
// the first call that needs a device. The CUDA runtime is the simulated one.
#include <gtest/gtest.h>

#include "cuda_ops/cublaslt_product.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

Status WhyNot(const ProductShape& shape, const CublasLtProduct::Options& options, bool tf32 = false) {
  CudaContext context;  // without a handle: that wants a GPU
  context.tf32 = tf32;
  return CublasLtProduct::Create(context, shape, options).status();
}

TEST(RealCublasLt, TakesDescriptionsOfEveryKind) {
  const ProductShape dense = {5, 3, 7, {}, {7, 1, {}}, {3, 1, {}}, {3, 1, {}}};
  const ProductShape transposed = {5, 3, 7, {}, {1, 5, {}}, {1, 7, {}}, {1, 5, {}}};
  // [outer, rows, inner, columns]: the heads of attention.
  const ProductShape heads = {5, 5, 5, {2, 3}, {15, 1, {75, 5}}, {15, 1, {75, 5}}, {15, 1, {75, 5}}};
  const ProductShape repeated = {5, 3, 7, {4}, {1, 5, {0}}, {3, 1, {21}}, {3, 1, {15}}};
  for (const ProductShape& shape : {dense, transposed, heads, repeated}) {
    for (const DType dtype : {DType::kFloat, DType::kBfloat16, DType::kFloat16, DType::kDouble}) {
      for (const bool bias_row : {false, true}) {
        if (bias_row && (dtype == DType::kDouble || shape.c.row == 1)) continue;
        CublasLtProduct::Options options;
        options.dtype = dtype;
        options.bias_row = bias_row;
        options.c_alignment = 16;
        EXPECT_TRUE(Fails(WhyNot(shape, options), StatusCode::kInternal, "cublasLtMatmulAlgoGetHeuristic: "));
        EXPECT_TRUE(Fails(WhyNot(shape, options, true), StatusCode::kInternal, "cublasLtMatmulAlgoGetHeuristic: "));
      }
    }
  }
}

// As the simulated one does.
TEST(RealCublasLt, RefusesAnAttributeOfAnotherSize) {
  cublasLtMatrixLayout_t layout = nullptr;
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 3, 5, 3), CUBLAS_STATUS_SUCCESS);
  const int64_t count = 2;
  EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
}

TEST(RealCublasLt, IsAVersionWhoseHeaderWeKnow) { EXPECT_EQ(cublasLtGetVersion() / 10000, CUBLAS_VERSION / 10000); }

}  // namespace
}  // namespace onnxtrain
