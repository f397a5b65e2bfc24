// SPDX-License-Identifier: Apache-2.0
// Matrix products of every backend against sums in double: all transposes and permutations, batches that broadcast,
// sizes 0, 1 and odd, every element type. What a result may be off by is bounded term by term.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "graph/op_registry.h"
#include "tests/support/backends.h"
#include "tests/support/device_runner.h"
#include "tests/support/naive_reference.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

using Permutation = std::vector<int64_t>;

Permutation IdentityOf(size_t rank) {
  Permutation identity(rank);
  std::iota(identity.begin(), identity.end(), 0);
  return identity;
}

Shape Permuted(const Shape& shape, const Permutation& permutation) {
  Shape result;
  for (const int64_t axis : permutation) result.push_back(shape[static_cast<size_t>(axis)]);
  return result;
}

// The shape that Permuted takes to `wanted`.
Shape Unpermuted(const Shape& wanted, const Permutation& permutation) {
  Shape result(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) result[static_cast<size_t>(permutation[i])] = wanted[i];
  return result;
}

Tensor Transposed(const Tensor& x, const Permutation& permutation) {
  return FromIndices(DType::kDouble, Permuted(x.shape(), permutation),
                     [&](const Index& index) { return At(x, Unpermuted(index, permutation)); });
}

// A result and the sum of the magnitudes of its terms.
struct Expected {
  Tensor value;
  Tensor magnitude;
};

Tensor Product(const Tensor& a, const Tensor& b, const std::function<double(double)>& term) {
  const size_t matrix = 2;
  Shape shape =
      BroadcastShape({a.shape().begin(), a.shape().end() - matrix}, {b.shape().begin(), b.shape().end() - matrix});
  const int64_t depth = a.shape().back();
  shape.insert(shape.end(), {a.shape()[a.shape().size() - 2], b.shape().back()});
  return FromIndices(DType::kDouble, shape, [&](Index index) {
    double sum = 0;
    Index left = index, right = index;
    for (int64_t k = 0; k < depth; ++k) {
      left.back() = k;
      right[right.size() - 2] = k;
      sum += term(At(a, left) * At(b, right));
    }
    return sum;
  });
}

// alpha op(A) op(B), in the shape of the product.
Expected Multiplied(const Tensor& a, const Tensor& b, double alpha) {
  return {Product(a, b, [=](double term) { return alpha * term; }),
          Product(a, b, [=](double term) { return std::fabs(alpha * term); })};
}

Expected Plus(const Expected& product, const Tensor& bias, double beta) {
  const Shape& shape = product.value.shape();
  return {FromIndices(DType::kDouble, shape, [&](const Index& i) { return At(product.value, i) + beta * At(bias, i); }),
          FromIndices(DType::kDouble, shape,
                      [&](const Index& i) { return At(product.magnitude, i) + std::fabs(beta * At(bias, i)); })};
}

// Half the distance of one and the next number.
double RoundingOf(DType dtype) {
  return dtype == DType::kBfloat16  ? 0x1p-8
         : dtype == DType::kFloat16 ? 0x1p-11
         : dtype == DType::kFloat   ? 0x1p-24
                                    : 0x1p-53;
}

class MatrixProducts : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string reason = WhyNot(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
    backend_ = OpenTestBackend(GetParam(), 1);
    if (GetParam() == "cpu") dtypes_ = {DType::kFloat, DType::kDouble};
  }

  Tensor Random(DType dtype, const Shape& shape) {
    return RandomTensor(DType::kDouble, shape, ++seed_, -1, 1).CastTo(dtype);
  }
  // Each type in turn.
  DType NextType() { return dtypes_[static_cast<size_t>(++turn_) % dtypes_.size()]; }
  int64_t Pick(const std::vector<int64_t>& sizes) { return sizes[random_() % sizes.size()]; }

  StatusOr<Tensor> Run(const std::string& op, const std::vector<Tensor>& inputs, const Attributes& attributes) {
    std::vector<OpInput> fed;
    for (const Tensor& input : inputs) fed.push_back(Fed(input));
    Graph graph(OpRegistry::Default());
    RETURN_IF_ERROR(AddOp(graph, op, fed, attributes));
    ASSIGN_OR_RETURN(OpRunnerResult result, RunGraphOn(backend_->device(0), graph, FeedsOf(fed)));
    return std::move(result.fetches.at("y0"));
  }

  // `depth` terms and a bias went into each element.
  static void ExpectClose(const Tensor& found, const Expected& expected, int64_t depth) {
    ASSERT_EQ(found.shape(), expected.value.shape());
    const double rounding = RoundingOf(found.dtype());
    const double sums = RoundingOf(found.dtype() == DType::kDouble ? DType::kDouble : DType::kFloat);
    for (int64_t i = 0; i < found.elements(); ++i) {
      const double value = expected.value.DoubleAt(i);
      // Below its normal numbers float16 has steps of 2^-24.
      const double floor = found.dtype() == DType::kFloat16 ? 0x1p-25 : 0;
      const double allowed = static_cast<double>(depth + 3) * sums * expected.magnitude.DoubleAt(i) +
                             1.01 * rounding * std::fabs(value) + floor;
      ASSERT_NEAR(found.DoubleAt(i), value, allowed) << "element " << i;
    }
  }

  std::unique_ptr<Backend> backend_;
  std::vector<DType> dtypes_ = {DType::kFloat, DType::kBfloat16, DType::kFloat16, DType::kDouble};
  int turn_ = 0;
  uint64_t seed_ = 0;
  std::mt19937 random_{20};
};

TEST_P(MatrixProducts, BatchesBroadcast) {
  const std::vector<int64_t> sizes = {1, 2, 3, 7, 17, 33, 65};
  const std::vector<std::pair<Shape, Shape>> batches = {
      {{}, {}},      {{3}, {}},     {{}, {3}},        {{3}, {3}},          {{3}, {1}},       {{1}, {3}},
      {{2, 3}, {3}}, {{2, 1}, {3}}, {{2, 1}, {1, 3}}, {{2, 3, 2}, {3, 1}}, {{5, 2}, {5, 2}}, {{1, 1}, {}}};
  for (const auto& [batch_a, batch_b] : batches) {
    for (int round = 0; round < 4; ++round) {
      const DType dtype = NextType();
      const int64_t depth = Pick(sizes);
      Shape a = batch_a, b = batch_b;
      a.insert(a.end(), {Pick(sizes), depth});
      b.insert(b.end(), {depth, Pick(sizes)});
      SCOPED_TRACE(ToString(a) + ToString(b) + " " + std::string(NameOf(dtype)));
      const Tensor x = Random(dtype, a), w = Random(dtype, b);
      const StatusOr<Tensor> found = Run("MatMul", {x, w}, {});
      ASSERT_OK(found);
      ExpectClose(*found, Multiplied(x, w, 1), depth);
    }
  }
}

TEST_P(MatrixProducts, RowsAndColumnsAreOneDimensional) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{
           {{7}, {7}}, {{7}, {7, 3}}, {{5, 7}, {7}}, {{2, 5, 7}, {7}}, {{7}, {2, 7, 3}}, {{1}, {1}}}) {
    const DType dtype = NextType();
    SCOPED_TRACE(ToString(a) + ToString(b));
    const Tensor x = Random(dtype, a), w = Random(dtype, b);
    const StatusOr<Tensor> found = Run("MatMul", {x, w}, {});
    ASSERT_OK(found);
    Expected expected =
        Multiplied(a.size() == 1 ? x.Reshaped({1, a[0]}) : x, b.size() == 1 ? w.Reshaped({b[0], 1}) : w, 1);
    expected.value = expected.value.Reshaped(found->shape());
    expected.magnitude = expected.magnitude.Reshaped(found->shape());
    ExpectClose(*found, expected, a.back());
  }
}

TEST_P(MatrixProducts, AnEmptySumIsZeroAndAnEmptyResultIsNothing) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{5, 0}, {0, 3}},
                                                                 {{0, 7}, {7, 3}},
                                                                 {{5, 7}, {7, 0}},
                                                                 {{2, 5, 0}, {0, 3}},
                                                                 {{0, 5, 7}, {7, 3}},
                                                                 {{0}, {0}}}) {
    for (const DType dtype : dtypes_) {
      SCOPED_TRACE(ToString(a) + ToString(b));
      const StatusOr<Tensor> found = Run("MatMul", {Random(dtype, a), Random(dtype, b)}, {});
      ASSERT_OK(found);
      EXPECT_TRUE(found->Identical(Tensor(found->type())));
    }
  }
  for (const DType dtype : dtypes_) {
    const Tensor bias = Random(dtype, {3});
    const StatusOr<Tensor> found = Run("Gemm", {Random(dtype, {5, 0}), Random(dtype, {0, 3}), bias}, {});
    ASSERT_OK(found);
    EXPECT_TRUE(found->Identical(FromIndices(dtype, {5, 3}, [&](const Index& i) { return At(bias, i); })));
  }
}

TEST_P(MatrixProducts, GemmAddsItsBias) {
  for (const int64_t trans_a : {0, 1}) {
    for (const int64_t trans_b : {0, 1}) {
      for (const Shape& c : {Shape{17}, Shape{9, 17}, Shape{9, 1}, Shape{1, 17}, Shape{1}, Shape{}}) {
        for (const float beta : {1.0f, -0.5f, 0.0f}) {
          const DType dtype = NextType();
          SCOPED_TRACE(ToString(c) + " " + std::string(NameOf(dtype)));
          const Permutation swapped = {1, 0}, plain = {0, 1};
          const Tensor x = Random(dtype, trans_a != 0 ? Shape{31, 9} : Shape{9, 31});
          const Tensor w = Random(dtype, trans_b != 0 ? Shape{17, 31} : Shape{31, 17});
          const Tensor bias = Random(dtype, c);
          const StatusOr<Tensor> found =
              Run("Gemm", {x, w, bias}, {{"transA", trans_a}, {"transB", trans_b}, {"alpha", 0.75f}, {"beta", beta}});
          ASSERT_OK(found);
          const Expected product = Multiplied(Transposed(x, trans_a != 0 ? swapped : plain),
                                              Transposed(w, trans_b != 0 ? swapped : plain), 0.75);
          ExpectClose(*found, Plus(product, bias, static_cast<double>(beta)), 31);
        }
      }
    }
  }
}

// Whether each matrix has its rows or its columns beside each other.
bool IsExpressible(const Permutation& perm_a, const Permutation& perm_b, const Permutation& perm_y) {
  const size_t rank = perm_a.size();
  const auto last = static_cast<int64_t>(rank) - 1;
  const auto in_matrix = [&](const Permutation& permutation) {
    return permutation[rank - 1] == last || permutation[rank - 2] == last;
  };
  return in_matrix(perm_a) && in_matrix(perm_b) && perm_y.back() >= last - 1;
}

// All pairs of operands' permutations, each with some permutation of the result.
TEST_P(MatrixProducts, OperandsAndResultArePermuted) {
  int served = 0;
  for (size_t rank = 2; rank <= 4; ++rank) {
    const Shape sizes = {2, 3, 5, 4};  // of batch axes, then rows and columns
    const int64_t depth = 7;
    Shape left(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(rank) - 2), right = left;
    left.insert(left.end(), {sizes[2], depth});
    right.insert(right.end(), {depth, sizes[3]});
    Permutation perm_y = IdentityOf(rank);
    Permutation perm_a = IdentityOf(rank);
    do {
      Permutation perm_b = IdentityOf(rank);
      do {
        std::next_permutation(perm_y.begin(), perm_y.end());
        const DType dtype = NextType();
        SCOPED_TRACE(ToString(perm_a) + ToString(perm_b) + ToString(perm_y) + " " + std::string(NameOf(dtype)));
        const Tensor x = Random(dtype, Unpermuted(left, perm_a)), w = Random(dtype, Unpermuted(right, perm_b));
        const StatusOr<Tensor> found = Run(
            "onnxtrain.MatMul", {x, w}, {{"perm_a", perm_a}, {"perm_b", perm_b}, {"perm_y", perm_y}, {"alpha", 0.5f}});
        if (GetParam() != "cpu" && !IsExpressible(perm_a, perm_b, perm_y)) {
          EXPECT_TRUE(Fails(found.status(), StatusCode::kInvalidModel, "insert a Transpose before the product"));
          EXPECT_TRUE(Fails(found.status(), StatusCode::kInvalidModel, "onnxtrain.MatMul"));
          continue;
        }
        ASSERT_OK(found);
        ++served;
        Expected expected = Multiplied(Transposed(x, perm_a), Transposed(w, perm_b), 0.5);
        expected.value = Transposed(expected.value, perm_y);
        expected.magnitude = Transposed(expected.magnitude, perm_y);
        ExpectClose(*found, expected, depth);
      } while (std::next_permutation(perm_b.begin(), perm_b.end()));
    } while (std::next_permutation(perm_a.begin(), perm_a.end()));
  }
  EXPECT_GE(served, 80);
}

// The forms of attention and of a linear layer, with sizes that leave tails everywhere.
TEST_P(MatrixProducts, ABatchThatCannotBeJoinedIsWalked) {
  const Permutation heads = {0, 2, 1, 3}, keys = {0, 2, 3, 1};
  for (const DType dtype : dtypes_) {
    SCOPED_TRACE(NameOf(dtype));
    for (const auto& [batch, count] : std::vector<std::pair<int64_t, int64_t>>{{3, 5}, {7, 2}, {1, 3}, {4, 1}}) {
      const Tensor q = Random(dtype, {batch, 9, count, 11}), k = Random(dtype, {batch, 6, count, 11});
      const StatusOr<Tensor> scores = Run("onnxtrain.MatMul", {q, k}, {{"perm_a", heads}, {"perm_b", keys}});
      ASSERT_OK(scores);
      ExpectClose(*scores, Multiplied(Transposed(q, heads), Transposed(k, keys), 1), 11);
      const Tensor p = Random(dtype, {batch, count, 9, 6}), v = Random(dtype, {batch, 6, count, 11});
      const StatusOr<Tensor> mixed = Run("onnxtrain.MatMul", {p, v}, {{"perm_b", heads}, {"perm_y", heads}});
      ASSERT_OK(mixed);
      const Expected expected = Multiplied(p, Transposed(v, heads), 1);
      ExpectClose(*mixed, {Transposed(expected.value, heads), Transposed(expected.magnitude, heads)}, 6);
    }
  }
}

TEST_P(MatrixProducts, ARowOfBiasIsAddedToEveryRow) {
  for (const DType dtype : dtypes_) {
    for (const Permutation& perm_y : {Permutation{0, 1, 2}, Permutation{0, 2, 1}, Permutation{1, 0, 2}}) {
      SCOPED_TRACE(ToString(perm_y) + " " + std::string(NameOf(dtype)));
      const Tensor x = Random(dtype, {3, 5, 13}), w = Random(dtype, {13, 7}), bias = Random(dtype, {7});
      const StatusOr<Tensor> found = Run("onnxtrain.MatMul", {x, w, bias}, {{"perm_y", perm_y}});
      ASSERT_OK(found);
      const Expected expected = Plus(Multiplied(x, w, 1), bias, 1);
      ExpectClose(*found, {Transposed(expected.value, perm_y), Transposed(expected.magnitude, perm_y)}, 13);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, MatrixProducts, testing::ValuesIn(AllBackends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace onnxtrain
