// SPDX-License-Identifier: Apache-2.0
#include "runtime/matrix_geometry.h"

#include <algorithm>

#include "graph/attributes.h"

namespace onnxtrain {
namespace {

void EraseBatchAxis(ProductShape& shape, size_t axis) {
  const auto offset = static_cast<std::ptrdiff_t>(axis);
  shape.batch.erase(shape.batch.begin() + offset);
  for (MatrixLayout* layout : {&shape.a, &shape.b, &shape.c}) layout->batch.erase(layout->batch.begin() + offset);
}

// Joins batch axis `axis` with the next one if a single stride serves both in all three.
bool JoinBatchAxes(ProductShape& shape, size_t axis) {
  const int64_t inner = shape.batch[axis + 1];
  for (const MatrixLayout* layout : {&shape.a, &shape.b, &shape.c}) {
    if (layout->batch[axis] != layout->batch[axis + 1] * inner) return false;
  }
  shape.batch[axis + 1] *= shape.batch[axis];
  EraseBatchAxis(shape, axis);
  return true;
}

bool FoldLastBatchAxisIntoRows(ProductShape& shape) {
  const size_t last = shape.batch.size() - 1;
  const int64_t a_stride = shape.a.batch[last];
  const int64_t c_stride = shape.c.batch[last];
  if (shape.b.batch[last] != 0 || a_stride == 0) return false;
  if (shape.rows != 1 && (a_stride != shape.rows * shape.a.row || c_stride != shape.rows * shape.c.row)) return false;
  if (shape.rows == 1) {
    shape.a.row = a_stride;
    shape.c.row = c_stride;
  }
  shape.rows *= shape.batch[last];
  EraseBatchAxis(shape, last);
  return true;
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// A tensor seen as a stack of matrices: sizes and strides per axis.
struct View {
  Shape shape;
  std::vector<int64_t> strides;
};

View Permuted(const Shape& shape, const std::vector<int64_t>& permutation) {
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  if (permutation.empty()) return {shape, strides};
  View view;
  for (int64_t axis : permutation) {
    view.shape.push_back(shape[axis]);
    view.strides.push_back(strides[axis]);
  }
  return view;
}

// The layout of `view` under the batch axes of the result, to which it broadcasts.
MatrixLayout LayoutOf(const View& view, size_t batch_axes) {
  const size_t own = view.shape.size() - 2;
  MatrixLayout layout{view.strides[own], view.strides[own + 1], std::vector<int64_t>(batch_axes, 0)};
  for (size_t i = 0; i < own; ++i) {
    if (view.shape[i] != 1) layout.batch[batch_axes - own + i] = view.strides[i];
  }
  return layout;
}

// `y` is seen through the inverse of perm_y, so that its last two axes are the product's rows and columns.
ProductShape ShapeOf(const View& a, const View& b, const View& y) {
  const size_t batch_axes = y.shape.size() - 2;
  ProductShape shape;
  shape.rows = y.shape[batch_axes];
  shape.columns = y.shape[batch_axes + 1];
  shape.depth = a.shape.back();
  shape.batch.assign(y.shape.begin(), y.shape.end() - 2);
  shape.a = LayoutOf(a, batch_axes);
  shape.b = LayoutOf(b, batch_axes);
  shape.c = LayoutOf(y, batch_axes);
  return shape;
}

ProductNode MatMulNode(const Node& node) {
  Shape a = node.input(0)->type().shape;
  Shape b = node.input(1)->type().shape;
  Shape y = node.output(0)->type().shape;
  if (b.size() == 1) {
    b.push_back(1);
    y.push_back(1);
  }
  if (a.size() == 1) {
    a.insert(a.begin(), 1);
    y.insert(y.end() - 1, 1);
  }
  return {ShapeOf(Permuted(a, {}), Permuted(b, {}), Permuted(y, {})), 1, std::nullopt};
}

ProductNode PermutedMatMulNode(const Node& node) {
  const Attributes& attributes = node.attributes();
  const std::vector<int64_t> perm_y = attributes.Ints("perm_y");
  std::vector<int64_t> inverse(perm_y.size());
  for (size_t i = 0; i < perm_y.size(); ++i) inverse[static_cast<size_t>(perm_y[i])] = static_cast<int64_t>(i);
  ProductNode product;
  product.shape = ShapeOf(Permuted(node.input(0)->type().shape, attributes.Ints("perm_a")),
                          Permuted(node.input(1)->type().shape, attributes.Ints("perm_b")),
                          Permuted(node.output(0)->type().shape, inverse));
  product.alpha = DecimalValue(attributes.Float("alpha", 1));
  if (node.input(2) != nullptr) product.bias = ProductBias{1, 0, 1};
  return product;
}

// Strides of C, which broadcasts to [rows, columns].
ProductBias GemmBias(const Shape& c, double beta) {
  const int64_t columns = c.empty() ? 1 : c.back();
  const int64_t rows = c.size() < 2 ? 1 : c[c.size() - 2];
  return {beta, rows == 1 ? 0 : columns, columns == 1 ? 0 : 1};
}

ProductNode GemmNode(const Node& node) {
  const Attributes& attributes = node.attributes();
  const std::vector<int64_t> transposed = {1, 0};
  const std::vector<int64_t> as_it_is = {};
  ProductNode product;
  product.shape =
      ShapeOf(Permuted(node.input(0)->type().shape, attributes.Int("transA", 0) != 0 ? transposed : as_it_is),
              Permuted(node.input(1)->type().shape, attributes.Int("transB", 0) != 0 ? transposed : as_it_is),
              Permuted(node.output(0)->type().shape, {}));
  product.alpha = DecimalValue(attributes.Float("alpha", 1));
  const double beta = DecimalValue(attributes.Float("beta", 1));
  if (node.input(2) != nullptr && beta != 0) product.bias = GemmBias(node.input(2)->type().shape, beta);
  return product;
}

}  // namespace

ProductNode ProductNodeOf(const Node& node) {
  if (node.op() == "MatMul") return MatMulNode(node);
  if (node.op() == "Gemm") return GemmNode(node);
  CHECK_WITH(node.op() == "onnxtrain.MatMul", node.op());
  return PermutedMatMulNode(node);
}

ProductShape Simplified(ProductShape shape) {
  for (size_t axis = shape.batch.size(); axis-- > 0;) {
    if (shape.batch[axis] == 1) EraseBatchAxis(shape, axis);
  }
  for (size_t axis = shape.batch.size(); axis-- > 1;) JoinBatchAxes(shape, axis - 1);
  while (!shape.batch.empty() && FoldLastBatchAxisIntoRows(shape)) {
  }
  return shape;
}

std::optional<StoredMatrix> StoredAs(const MatrixLayout& layout, int64_t rows, int64_t columns) {
  if ((columns == 1 || layout.column == 1) && (rows == 1 || layout.row >= columns)) {
    return StoredMatrix{false, rows == 1 ? columns : layout.row};
  }
  if ((rows == 1 || layout.row == 1) && (columns == 1 || layout.column >= rows)) {
    return StoredMatrix{true, columns == 1 ? rows : layout.column};
  }
  return std::nullopt;
}

void SwapOperands(ProductShape& shape) {
  std::swap(shape.rows, shape.columns);
  std::swap(shape.a, shape.b);
  for (MatrixLayout* layout : {&shape.a, &shape.b, &shape.c}) std::swap(layout->row, layout->column);
}

}  // namespace onnxtrain
