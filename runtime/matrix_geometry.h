// SPDX-License-Identifier: Apache-2.0
// The geometry of matrix products, the same for every backend: which strides the nodes MatMul, Gemm and
// onnxtrain.MatMul walk with, and how a product is put into the form that a BLAS takes.
#ifndef ONNXTRAIN_RUNTIME_MATRIX_GEOMETRY_H_
#define ONNXTRAIN_RUNTIME_MATRIX_GEOMETRY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

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

// What a product is added to: beta * bias, broadcast over the result.
struct ProductBias {
  double beta = 1;
  int64_t row = 0;  // strides in the bias; zero repeats it
  int64_t column = 0;
};

// A node MatMul, Gemm or onnxtrain.MatMul: Y = alpha A B + beta C with C, if there is one, as input 2.
struct ProductNode {
  ProductShape shape;
  double alpha = 1;
  std::optional<ProductBias> bias;
};
ProductNode ProductNodeOf(const Node& node);

// How BLAS sees a matrix: stored row by row as it is or transposed, with `leading` elements from one stored row to the
// next.
struct StoredMatrix {
  bool transposed;
  int64_t leading;
};
// Nothing where neither rows nor columns lie densely.
std::optional<StoredMatrix> StoredAs(const MatrixLayout& layout, int64_t rows, int64_t columns);

// C^T = B^T A^T: the caller passes the operands the other way round.
void SwapOperands(ProductShape& shape);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_MATRIX_GEOMETRY_H_
