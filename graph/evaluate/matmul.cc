// SPDX-License-Identifier: Apache-2.0
// MatMul with numpy's rules for vectors and batches.
#include "graph/evaluate/evaluation.h"
#include "graph/evaluate/strided.h"

namespace onnxtrain::evaluation {
namespace {

struct Product {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  Shape batch;
  Strides a_batch;  // element strides by batch axis
  Strides b_batch;
};

Strides BatchStrides(const Shape& matrices, const Shape& batch) {
  const Shape own(matrices.begin(), matrices.end() - 2);
  Strides strides = BroadcastStrides(own, batch);
  const int64_t matrix = matrices[matrices.size() - 2] * matrices.back();
  for (int64_t& stride : strides) stride *= matrix;
  return strides;
}

StatusOr<Product> ReadProduct(const Call& call, const Shape& a, const Shape& b) {
  Product product;
  product.rows = a[a.size() - 2];
  product.depth = a.back();
  product.columns = b.back();
  const std::optional<Shape> batch = Broadcast({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
  if (!batch || b[b.size() - 2] != product.depth) {
    return call.Error("shapes " + ToString(a) + " and " + ToString(b) + " do not fit");
  }
  product.batch = *batch;
  product.a_batch = BatchStrides(a, *batch);
  product.b_batch = BatchStrides(b, *batch);
  return product;
}

template <typename T>
void Multiply(const Product& product, std::span<const T> a, std::span<const T> b, std::span<T> c) {
  using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  Walk<2> walk(product.batch, {product.a_batch, product.b_batch});
  const int64_t matrix = product.rows * product.columns;
  for (size_t i = 0; i < c.size(); ++i) {
    const int64_t within = static_cast<int64_t>(i) % matrix;
    const int64_t row = within / product.columns;
    const int64_t column = within % product.columns;
    Accumulator total{};
    for (int64_t k = 0; k < product.depth; ++k) {
      const T x = a[static_cast<size_t>(walk.offset(0) + row * product.depth + k)];
      const T y = b[static_cast<size_t>(walk.offset(1) + k * product.columns + column)];
      total = WrapAdd(total, WrapMul(static_cast<Accumulator>(x), static_cast<Accumulator>(y)));
    }
    c[i] = static_cast<T>(total);
    if (within == matrix - 1) walk.Next();
  }
}

Result RunMatMul(const Call& call) {
  const Tensor& a = call.input(0);
  const Tensor& b = call.input(1);
  if (a.dtype() != b.dtype()) return call.Error("element types differ");
  if (a.type().rank() == 0 || b.type().rank() == 0) return call.Error("a scalar is no matrix");
  Shape a_shape = a.shape();
  Shape b_shape = b.shape();
  if (a_shape.size() == 1) a_shape.insert(a_shape.begin(), 1);
  if (b_shape.size() == 1) b_shape.push_back(1);
  ASSIGN_OR_RETURN(const Product product, ReadProduct(call, a_shape, b_shape));
  Shape full = product.batch;
  full.insert(full.end(), {product.rows, product.columns});
  Shape shape = product.batch;
  if (a.type().rank() > 1) shape.push_back(product.rows);
  if (b.type().rank() > 1) shape.push_back(product.columns);
  ASSIGN_OR_RETURN(Tensor result, call.NewTensor(a.dtype(), std::move(full)));
  const bool served = VisitNumber(
      a.dtype(),
      [&](auto zero) {
        using T = decltype(zero);
        Multiply<T>(product, a.values<T>(), b.values<T>(), result.values<T>());
        return true;
      },
      [] { return false; });
  if (!served) return call.UnsupportedType(a.dtype());
  return One(result.Reshaped(std::move(shape)));
}

constexpr Row kRows[] = {{"MatMul", RunMatMul, 2, true}};

}  // namespace

std::span<const Row> MatMulRows() { return kRows; }

}  // namespace onnxtrain::evaluation
