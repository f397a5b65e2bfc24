// SPDX-License-Identifier: Apache-2.0
// A product of matrices, or of a batch of them, in float or double: the geometry is fixed at creation, and with it the
// code that runs it (dnnl_sgemm, oneDNN's batched primitive, or own loops).
#ifndef ONNXTRAIN_RUNTIME_CPU_MATRIX_PRODUCT_H_
#define ONNXTRAIN_RUNTIME_CPU_MATRIX_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/dtype.h"
#include "graph/status.h"

namespace onnxtrain {

// Strides in elements. A stride of zero along a batch axis repeats the matrix.
struct MatrixLayout {
  int64_t row = 0;
  int64_t column = 0;
  std::vector<int64_t> batch;  // one per batch axis
};

// C[rows, columns] = A[rows, depth] B[depth, columns] for every index of the batch axes. No two indices write the same
// C.
struct ProductShape {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  std::vector<int64_t> batch;
  MatrixLayout a, b, c;
};

// The same product with as few batch axes as possible: neighbours are joined, and where one B serves a stack of A that
// lies densely, the stack is one tall matrix.
ProductShape Simplified(ProductShape shape);

class MatrixProduct {
 public:
  // C = alpha A B, or with `accumulate` C += alpha A B. Serves float and double.
  static StatusOr<std::unique_ptr<MatrixProduct>> Create(DType dtype, ProductShape shape, double alpha, bool accumulate,
                                                         int threads);
  virtual ~MatrixProduct() = default;
  virtual size_t workspace_bytes() const { return 0; }
  // Pointers to elements of the dtype; `workspace` is 64-byte aligned.
  virtual Status Run(const void* a, const void* b, void* c, std::byte* workspace) = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_MATRIX_PRODUCT_H_
