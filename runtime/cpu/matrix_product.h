// SPDX-License-Identifier: Apache-2.0
// A product of matrices, or of a batch of them, in float, double or bfloat16: the geometry is fixed at creation, and with it the
// code that runs it (dnnl_sgemm, oneDNN's batched primitive, or own loops).
#ifndef ONNXTRAIN_RUNTIME_CPU_MATRIX_PRODUCT_H_
#define ONNXTRAIN_RUNTIME_CPU_MATRIX_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "graph/dtype.h"
#include "graph/status.h"
#include "runtime/matrix_geometry.h"

namespace onnxtrain {

class MatrixProduct {
 public:
  // C = alpha A B, or with `accumulate` C += alpha A B. Serves float and double, and bfloat16 where the processor has
  // instructions for it; refuses others with InvalidModel.
  static StatusOr<std::unique_ptr<MatrixProduct>> Create(DType dtype, ProductShape shape, double alpha, bool accumulate,
                                                         int threads);
  virtual ~MatrixProduct() = default;
  virtual size_t workspace_bytes() const { return 0; }
  // Pointers to elements of the dtype; `workspace` is 64-byte aligned.
  virtual Status Run(const void* a, const void* b, void* c, std::byte* workspace) = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_MATRIX_PRODUCT_H_
