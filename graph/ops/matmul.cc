// SPDX-License-Identifier: Apache-2.0
// MatMul, Gemm, and onnxtrain.MatMul: a product whose operands and result are read and written through permutations, so
// that no gradient and no exported transpose costs a copy. It is closed under differentiation:
//   Y = Transpose(alpha * Transpose(A, perm_a) Transpose(B, perm_b) + bias, perm_y).
#include <algorithm>
#include <numeric>

#include "graph/gradient.h"
#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/own_op_checks.h"

namespace onnxtrain {
namespace {

using Permutation = std::vector<int64_t>;

Permutation IdentityOf(int64_t rank) {
  Permutation identity(static_cast<size_t>(rank));
  std::iota(identity.begin(), identity.end(), 0);
  return identity;
}

bool IsIdentity(const Permutation& permutation) {
  return permutation == IdentityOf(static_cast<int64_t>(permutation.size()));
}

Permutation InverseOf(const Permutation& permutation) {
  Permutation inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) inverse[permutation[i]] = static_cast<int64_t>(i);
  return inverse;
}

Permutation WithLastTwoSwapped(Permutation permutation) {
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return permutation;
}

Shape Permuted(const Shape& shape, const Permutation& permutation) {
  Shape result;
  for (int64_t axis : permutation) result.push_back(shape[axis]);
  return result;
}

// The attribute, or the identity where it is absent.
StatusOr<Permutation> PermutationOf(const Attributes& attributes, const char* name, int64_t rank) {
  if (!attributes.Has(name)) return IdentityOf(rank);
  Permutation permutation = attributes.Ints(name);
  Permutation sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != IdentityOf(rank)) {
    return InvalidModelError(std::string(name) + " is not a permutation of " + std::to_string(rank) + " axes");
  }
  return permutation;
}

// Shape of the product of matrices or stacks of them; batch axes broadcast.
StatusOr<Shape> ProductShapeOf(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (size_t i = 2; i < result.size(); ++i) {
    const int64_t from_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t from_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) {
      return InvalidModelError("batch axes of " + ToString(a) + " and " + ToString(b) + " do not broadcast");
    }
    result[result.size() - 1 - i] = from_a == 1 ? from_b : from_a;
  }
  if (a[a.size() - 1] != b[b.size() - 2]) {
    return InvalidModelError("cannot multiply " + ToString(a) + " with " + ToString(b));
  }
  result[result.size() - 2] = a[a.size() - 2];
  result[result.size() - 1] = b[b.size() - 1];
  return result;
}

StatusOr<std::vector<TensorType>> InferPermutedMatMul(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(2, 3);
  check.Outputs(1, 1);
  check.Attributes({{"perm_a", AttributeKind::kInts},
                    {"perm_b", AttributeKind::kInts},
                    {"perm_y", AttributeKind::kInts},
                    {"alpha", AttributeKind::kFloat}});
  check.Floating(0, "A");
  check.Floating(1, "B");
  RETURN_IF_ERROR(check.status());
  const TensorType& a = context.inputs[0];
  const TensorType& b = context.inputs[1];
  check.Demand(a.rank() >= 2 && b.rank() >= 2 && a.dtype == b.dtype,
               "A and B must have one element type and at least two axes");
  RETURN_IF_ERROR(check.status());
  ASSIGN_OR_RETURN(const Permutation perm_a, PermutationOf(context.attributes, "perm_a", a.rank()));
  ASSIGN_OR_RETURN(const Permutation perm_b, PermutationOf(context.attributes, "perm_b", b.rank()));
  ASSIGN_OR_RETURN(const Shape product, ProductShapeOf(Permuted(a.shape, perm_a), Permuted(b.shape, perm_b)));
  ASSIGN_OR_RETURN(const Permutation perm_y,
                   PermutationOf(context.attributes, "perm_y", static_cast<int64_t>(product.size())));
  if (context.inputs.size() > 2 && context.inputs[2].known()) check.Type(2, "bias", {a.dtype, {product.back()}});
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{{a.dtype, Permuted(product, perm_y)}};
}

// One product under differentiation.
struct Product {
  Value* a;
  Value* b;
  Permutation perm_a;
  Permutation perm_b;
  Permutation perm_y;
  float alpha = 1;
};

// The transpose of a product of two matrices is the product of their transposes the other way round.
Product WithPlainResult(Product product) {
  if (product.perm_y != Permutation{1, 0}) return product;
  return {product.b, product.a,    WithLastTwoSwapped(product.perm_b), WithLastTwoSwapped(product.perm_a),
          {0, 1},    product.alpha};
}

// The node with the fewest words that computes it: MatMul, Gemm, or ours.
Value* Emit(GraphBuilder& build, const Product& wanted) {
  if (!build.ok()) return nullptr;
  const Product product = WithPlainResult(wanted);
  if (product.alpha == 1 && IsIdentity(product.perm_a) && IsIdentity(product.perm_b) && IsIdentity(product.perm_y)) {
    return build.Op("MatMul", {product.a, product.b});
  }
  Attributes attributes;
  if (product.perm_a.size() == 2 && product.perm_b.size() == 2 && IsIdentity(product.perm_y)) {
    if (!IsIdentity(product.perm_a)) attributes.Set("transA", int64_t{1});
    if (!IsIdentity(product.perm_b)) attributes.Set("transB", int64_t{1});
    if (product.alpha != 1) attributes.Set("alpha", product.alpha);
    return build.Op("Gemm", {product.a, product.b}, std::move(attributes));
  }
  if (!IsIdentity(product.perm_a)) attributes.Set("perm_a", product.perm_a);
  if (!IsIdentity(product.perm_b)) attributes.Set("perm_b", product.perm_b);
  if (!IsIdentity(product.perm_y)) attributes.Set("perm_y", product.perm_y);
  if (product.alpha != 1) attributes.Set("alpha", product.alpha);
  return build.Op("onnxtrain.MatMul", {product.a, product.b}, std::move(attributes));
}

// `operand` holds a gradient of the broadcast shape, whose batch axes are summed to those of `shape` (permuted).
Value* EmitReduced(GraphBuilder& build, Product product, const Shape& broadcast, const Shape& shape,
                   const Permutation& permutation) {
  if (broadcast == shape) {
    product.perm_y = InverseOf(permutation);
    return Emit(build, product);
  }
  product.perm_y = IdentityOf(static_cast<int64_t>(broadcast.size()));
  return build.Transpose(build.SumTo(Emit(build, product), shape), InverseOf(permutation));
}

Shape WithMatrix(Shape shape, int64_t rows, int64_t columns) {
  shape[shape.size() - 2] = rows;
  shape[shape.size() - 1] = columns;
  return shape;
}

// dA = dY B^T.
Value* LeftGradient(GraphBuilder& build, const Product& product, Value* dy, const Shape& y) {
  const Shape a = Permuted(product.a->type().shape, product.perm_a);
  const Product gradient{dy, product.b,    InverseOf(product.perm_y), WithLastTwoSwapped(product.perm_b),
                         {}, product.alpha};
  return EmitReduced(build, gradient, WithMatrix(y, a[a.size() - 2], a.back()), a, product.perm_a);
}

bool OneMatrix(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end() - 2, [](int64_t size) { return size == 1; });
}

// dB = A^T dY. Where one B serves many A, their rows are one long matrix and the sum over them is in the product.
Value* RightGradient(GraphBuilder& build, const Product& product, Value* dy, const Shape& y) {
  const Shape b = Permuted(product.b->type().shape, product.perm_b);
  if (OneMatrix(b) && y.size() > 2) {
    Value* a = build.Transpose(product.a, product.perm_a);
    dy = build.Transpose(dy, InverseOf(product.perm_y));
    if (!build.ok()) return nullptr;
    const Shape& stack = a->type().shape;
    const int64_t rows = ElementsOf(std::span(y).first(y.size() - 1));
    const int64_t rows_of_a = ElementsOf(std::span(stack).first(stack.size() - 1));
    if (rows == rows_of_a) {
      Product folded{build.Reshape(a, {rows, stack.back()}),
                     build.Reshape(dy, {rows, y.back()}),
                     {1, 0},
                     {0, 1},
                     {0, 1},
                     product.alpha};
      if (b.size() == 2) {
        folded.perm_y = InverseOf(product.perm_b);
        return Emit(build, folded);
      }
      return build.Transpose(build.Reshape(Emit(build, folded), b), InverseOf(product.perm_b));
    }
  }
  const Product gradient{product.a, dy,           WithLastTwoSwapped(product.perm_a), InverseOf(product.perm_y),
                         {},        product.alpha};
  return EmitReduced(build, gradient, WithMatrix(y, b[b.size() - 2], b.back()), b, product.perm_b);
}

Status PermutedMatMulGradient(GradientContext& context) {
  Product product{context.input(0), context.input(1), {}, {}, {}, context.attributes().Float("alpha", 1)};
  Value* dy = context.output_gradient(0);
  const int64_t rank = dy->type().rank();
  ASSIGN_OR_RETURN(product.perm_a, PermutationOf(context.attributes(), "perm_a", product.a->type().rank()));
  ASSIGN_OR_RETURN(product.perm_b, PermutationOf(context.attributes(), "perm_b", product.b->type().rank()));
  ASSIGN_OR_RETURN(product.perm_y, PermutationOf(context.attributes(), "perm_y", rank));
  const Shape y = Permuted(dy->type().shape, InverseOf(product.perm_y));
  if (context.wanted(0)) context.SetInputGradient(0, LeftGradient(context.build, product, dy, y));
  if (context.wanted(1)) context.SetInputGradient(1, RightGradient(context.build, product, dy, y));
  if (context.wanted(2)) {
    std::vector<int64_t> axes;
    for (int64_t axis = 0; axis < rank; ++axis) {
      if (product.perm_y[axis] != rank - 1) axes.push_back(axis);
    }
    context.SetInputGradient(2, context.build.ReduceSum(dy, axes, /*keepdims=*/false));
  }
  return context.build.status();
}

// A 1-D operand is a row on the left, a column on the right; the product drops that axis again.
Status MatMulGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  const Shape& a = context.input(0)->type().shape;
  const Shape& b = context.input(1)->type().shape;
  const Shape matrix_a = a.size() == 1 ? Shape{1, a[0]} : a;
  const Shape matrix_b = b.size() == 1 ? Shape{b[0], 1} : b;
  ASSIGN_OR_RETURN(const Shape y, ProductShapeOf(matrix_a, matrix_b));
  Value* dy = build.Reshape(context.output_gradient(0), y);
  const Product product{build.Reshape(context.input(0), matrix_a), build.Reshape(context.input(1), matrix_b),
                        IdentityOf(static_cast<int64_t>(matrix_a.size())),
                        IdentityOf(static_cast<int64_t>(matrix_b.size())), IdentityOf(static_cast<int64_t>(y.size()))};
  if (!build.ok()) return build.status();
  if (context.wanted(0)) context.SetInputGradient(0, build.Reshape(LeftGradient(build, product, dy, y), a));
  if (context.wanted(1)) context.SetInputGradient(1, build.Reshape(RightGradient(build, product, dy, y), b));
  return build.status();
}

Attributes GemmAttributes(float alpha, int64_t trans_a, int64_t trans_b) {
  Attributes attributes;
  if (alpha != 1) attributes.Set("alpha", alpha);
  if (trans_a != 0) attributes.Set("transA", trans_a);
  if (trans_b != 0) attributes.Set("transB", trans_b);
  return attributes;
}

Status GemmGradient(GradientContext& context) {
  GraphBuilder& build = context.build;
  const int64_t trans_a = context.attributes().Int("transA", 0);
  const int64_t trans_b = context.attributes().Int("transB", 0);
  const float alpha = context.attributes().Float("alpha", 1);
  Value* a = context.input(0);
  Value* b = context.input(1);
  Value* dy = context.output_gradient(0);
  if (context.wanted(0)) {
    context.SetInputGradient(0, trans_a != 0 ? build.Op("Gemm", {b, dy}, GemmAttributes(alpha, trans_b, 1))
                                             : build.Op("Gemm", {dy, b}, GemmAttributes(alpha, 0, 1 - trans_b)));
  }
  if (context.wanted(1)) {
    context.SetInputGradient(1, trans_b != 0 ? build.Op("Gemm", {dy, a}, GemmAttributes(alpha, 1, trans_a))
                                             : build.Op("Gemm", {a, dy}, GemmAttributes(alpha, 1 - trans_a, 0)));
  }
  if (context.wanted(2)) {
    Value* dc = build.SumTo(dy, context.input(2)->type().shape);
    const double beta = DecimalValue(context.attributes().Float("beta", 1));
    if (beta != 1 && build.ok()) dc = build.Mul(dc, build.Scalar(beta, dc->type().dtype));
    context.SetInputGradient(2, dc);
  }
  return build.status();
}

}  // namespace

void AddMatMulOps(OpRegistry& registry) {
  registry.Add({.name = "MatMul", .gradient = MatMulGradient});
  registry.Add({.name = "Gemm", .gradient = GemmGradient});
  registry.Add({.name = "onnxtrain.MatMul", .infer = InferPermutedMatMul, .gradient = PermutedMatMulGradient});
}

}  // namespace onnxtrain
