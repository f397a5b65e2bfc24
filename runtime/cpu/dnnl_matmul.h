// SPDX-License-Identifier: Apache-2.0
// Matrix products of oneDNN.
#ifndef ONNXTRAIN_RUNTIME_CPU_DNNL_MATMUL_H_
#define ONNXTRAIN_RUNTIME_CPU_DNNL_MATMUL_H_

#include <cstdint>
#include <memory>

#include "runtime/cpu/dnnl_primitive.h"
#include "runtime/cpu/matrix_product.h"

namespace onnxtrain {

// C[rows, columns] = alpha A B + beta C, row-major, `*_leading` elements from row to row. A is stored [depth, rows]
// when `transpose_a`, B [columns, depth] when `transpose_b`. Uses the team of the calling ThreadTeam. At
// two-dimensional products this call of oneDNN is as fast as its matmul primitive or faster, up to 2x where the rows of
// B are 12 KiB.
struct SgemmArguments {
  bool transpose_a, transpose_b;
  int64_t rows, columns, depth;
  float alpha;
  const float* a;
  int64_t a_leading;
  const float* b;
  int64_t b_leading;
  float beta;
  float* c;
  int64_t c_leading;
};
Status DnnlSgemm(const SgemmArguments& arguments);

// The matmul primitive over a batch of float or bfloat16 matrices; run it with A, B, C. With `accumulate` it adds to C.
// Sums are in float.
StatusOr<std::unique_ptr<DnnlPrimitive>> CreateDnnlMatMul(DType dtype, const ProductShape& shape, float alpha,
                                                          bool accumulate);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_DNNL_MATMUL_H_
