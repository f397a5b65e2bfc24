// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "graph/op_registry.h"
#include "tests/support/gradient_check.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

// Element of a tensor at a full index, with axes of size one repeated.
double At(const Tensor& tensor, const Shape& index) {
  int64_t flat = 0;
  const size_t skipped = index.size() - tensor.shape().size();
  for (size_t i = 0; i < tensor.shape().size(); ++i) {
    flat = flat * tensor.shape()[i] + (tensor.shape()[i] == 1 ? 0 : index[skipped + i]);
  }
  return tensor.DoubleAt(flat);
}

Tensor Transposed(const Tensor& tensor, const std::vector<int64_t>& permutation) {
  Shape shape;
  for (int64_t axis : permutation) shape.push_back(tensor.shape()[axis]);
  Tensor result(TensorType{DType::kDouble, shape});
  for (int64_t flat = 0; flat < result.elements(); ++flat) {
    Shape index(shape.size());
    int64_t rest = flat;
    for (size_t i = shape.size(); i-- > 0; rest /= shape[i]) index[permutation[i]] = rest % shape[i];
    result.values<double>()[flat] = At(tensor, index);
  }
  return result;
}

// The product of stacks of matrices in double by its definition.
Tensor NaiveProduct(const Tensor& a, const Tensor& b) {
  const size_t rank = std::max(a.shape().size(), b.shape().size());
  Shape shape(rank, 1);
  for (size_t i = 0; i + 2 < rank; ++i) {
    for (const Tensor* operand : {&a, &b}) {
      const size_t skipped = rank - operand->shape().size();
      if (i >= skipped && operand->shape()[i - skipped] != 1) shape[i] = operand->shape()[i - skipped];
    }
  }
  shape[rank - 2] = a.shape()[a.shape().size() - 2];
  shape[rank - 1] = b.shape().back();
  Tensor result(TensorType{DType::kDouble, shape});
  for (int64_t flat = 0; flat < result.elements(); ++flat) {
    Shape index(rank);
    int64_t rest = flat;
    for (size_t i = rank; i-- > 0; rest /= shape[i]) index[i] = rest % shape[i];
    Shape left = index, right = index;
    double sum = 0;
    for (int64_t k = 0; k < a.shape().back(); ++k) {
      left[rank - 1] = k;
      right[rank - 2] = k;
      sum += At(a, left) * At(b, right);
    }
    result.values<double>()[flat] = sum;
  }
  return result;
}

struct Precision {
  DType dtype;
  double tolerance;
};
constexpr Precision kPrecisions[] = {{DType::kFloat, 2e-5}, {DType::kDouble, 1e-13}};

// Thread counts may change how oneDNN cuts the depth, so that only nearly equal numbers are promised across them.
Tensor RunOnce(std::string_view op, const std::vector<OpInput>& inputs, Attributes attributes, int threads) {
  Graph graph(OpRegistry::Default());
  EXPECT_TRUE(AddOp(graph, op, inputs, std::move(attributes)).ok());
  OpRunnerOptions options;
  options.threads = threads;
  StatusOr<OpRunnerResult> result = RunGraph(graph, FeedsOf(inputs), options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  StatusOr<OpRunnerResult> again = RunGraph(graph, FeedsOf(inputs), options);
  EXPECT_TRUE(again.ok());
  ExpectIdentical(again->fetches.at("y0"), result->fetches.at("y0"));
  return result->fetches.at("y0");
}

void ExpectRuns(std::string_view op, const std::vector<OpInput>& inputs, const Attributes& attributes,
                const Tensor& expected, double tolerance) {
  for (int threads : {1, 2}) {
    SCOPED_TRACE("threads " + std::to_string(threads));
    const Tensor result = RunOnce(op, inputs, attributes, threads);
    ExpectNear(result.CastTo(DType::kDouble), expected, tolerance);
  }
}

TEST(MatMul, EverySmallMatrix) {
  uint64_t seed = 1;
  for (const Precision& precision : kPrecisions) {
    for (int64_t m : {0, 1, 2, 7, 97}) {
      for (int64_t n : {0, 1, 3, 33, 257}) {
        for (int64_t k : {0, 1, 5, 17, 259}) {
          SCOPED_TRACE(ToString(Shape{m, n, k}));
          const Tensor a = RandomTensor(precision.dtype, {m, k}, ++seed);
          const Tensor b = RandomTensor(precision.dtype, {k, n}, ++seed);
          ExpectRuns("MatMul", {Fed(a), Fed(b)}, {}, NaiveProduct(a, b), precision.tolerance * 10);
        }
      }
    }
  }
}

TEST(MatMul, BatchAxesBroadcastOnEitherSide) {
  const std::pair<Shape, Shape> cases[] = {{{3, 4, 5}, {5, 2}},
                                           {{4, 5}, {3, 5, 2}},
                                           {{3, 4, 5}, {3, 5, 2}},
                                           {{3, 1, 4, 5}, {2, 5, 3}},
                                           {{2, 3, 4, 5}, {2, 1, 5, 3}},
                                           {{2, 3, 4, 5}, {1, 1, 5, 3}},
                                           {{1, 4, 5}, {3, 5, 2}},
                                           {{2, 3, 1, 5}, {5, 4}},
                                           {{0, 4, 5}, {5, 2}},
                                           {{2, 4, 0}, {2, 0, 3}},
                                           {{5, 2, 3, 1}, {5, 2, 1, 4}},
                                           {{2, 1, 3, 1, 4}, {2, 1, 4, 7}},
                                           {{8, 12, 33, 16}, {8, 12, 16, 33}}};
  uint64_t seed = 10;
  for (const Precision& precision : kPrecisions) {
    for (const auto& [left, right] : cases) {
      SCOPED_TRACE(ToString(left) + " x " + ToString(right));
      const Tensor a = RandomTensor(precision.dtype, left, ++seed);
      const Tensor b = RandomTensor(precision.dtype, right, ++seed);
      ExpectRuns("MatMul", {Fed(a), Fed(b)}, {}, NaiveProduct(a, b), precision.tolerance);
    }
  }
}

TEST(MatMul, VectorsLoseTheirAxis) {
  for (const Precision& precision : kPrecisions) {
    const Tensor row = RandomTensor(precision.dtype, {5}, 1);
    const Tensor column = RandomTensor(precision.dtype, {5}, 2);
    const Tensor stack = RandomTensor(precision.dtype, {3, 5, 4}, 3);
    const Tensor other = RandomTensor(precision.dtype, {3, 4, 5}, 4);
    const Tensor as_row = row.Reshaped({1, 5});
    const Tensor as_column = column.Reshaped({5, 1});
    ExpectRuns("MatMul", {Fed(row), Fed(column)}, {}, NaiveProduct(as_row, as_column).Reshaped({}),
               precision.tolerance);
    ExpectRuns("MatMul", {Fed(row), Fed(stack)}, {}, NaiveProduct(as_row, stack).Reshaped({3, 4}), precision.tolerance);
    ExpectRuns("MatMul", {Fed(other), Fed(column)}, {}, NaiveProduct(other, as_column).Reshaped({3, 4}),
               precision.tolerance);
  }
}

TEST(MatMul, LargeBlocksMeet) {
  const Tensor a = RandomTensor(DType::kDouble, {199, 515}, 1);
  const Tensor b = RandomTensor(DType::kDouble, {515, 521}, 2);
  ExpectRuns("MatMul", {Fed(a), Fed(b)}, {}, NaiveProduct(a, b), 1e-12);
  ExpectIdentical(RunOnce("MatMul", {Fed(a), Fed(b)}, {}, 1), RunOnce("MatMul", {Fed(a), Fed(b)}, {}, 3));
}

TEST(Gemm, TransposesAndScalesAndEveryShapeOfC) {
  const Shape shapes_of_c[] = {{}, {1}, {3}, {1, 3}, {4, 1}, {4, 3}, {1, 1}};
  uint64_t seed = 20;
  for (const Precision& precision : kPrecisions) {
    for (int64_t trans_a : {0, 1}) {
      for (int64_t trans_b : {0, 1}) {
        for (const Shape& shape_of_c : shapes_of_c) {
          SCOPED_TRACE(std::to_string(trans_a) + std::to_string(trans_b) + ToString(shape_of_c));
          const Tensor a = RandomTensor(precision.dtype, trans_a ? Shape{5, 4} : Shape{4, 5}, ++seed);
          const Tensor b = RandomTensor(precision.dtype, trans_b ? Shape{3, 5} : Shape{5, 3}, ++seed);
          const Tensor c = RandomTensor(precision.dtype, shape_of_c, ++seed);
          Tensor expected = NaiveProduct(trans_a ? Transposed(a, {1, 0}) : a, trans_b ? Transposed(b, {1, 0}) : b);
          for (int64_t i = 0; i < 12; ++i) {
            double& y = expected.values<double>()[i];
            y = 0.5 * y + 0.25 * At(c, {i / 3, i % 3});
          }
          const Attributes attributes{{"transA", trans_a}, {"transB", trans_b}, {"alpha", 0.5f}, {"beta", 0.25f}};
          ExpectRuns("Gemm", {Fed(a), Fed(b), Fed(c)}, attributes, expected, precision.tolerance);
        }
      }
    }
  }
}

TEST(Gemm, TallTransposedOperand) {
  const Tensor a = RandomTensor(DType::kFloat, {31, 1025}, 1);
  const Tensor b = RandomTensor(DType::kFloat, {31, 65}, 2);
  const Tensor c = RandomTensor(DType::kFloat, {65}, 3);
  Tensor expected = NaiveProduct(Transposed(a, {1, 0}), b);
  for (int64_t i = 0; i < expected.elements(); ++i) expected.values<double>()[i] += c.DoubleAt(i % 65);
  ExpectRuns("Gemm", {Fed(a), Fed(b), Fed(c)}, {{"transA", int64_t{1}}}, expected, 1e-4);
}

TEST(Gemm, WithoutCAndWithBetaZero) {
  const Tensor a = RandomTensor(DType::kFloat, {4, 5}, 1);
  const Tensor b = RandomTensor(DType::kFloat, {5, 3}, 2);
  Tensor poison = RandomTensor(DType::kFloat, {3}, 3);
  poison.values<float>()[1] = std::numeric_limits<float>::infinity();
  ExpectRuns("Gemm", {Fed(a), Fed(b)}, {}, NaiveProduct(a, b), 1e-5);
  ExpectRuns("Gemm", {Fed(a), Fed(b), Fed(poison)}, {{"beta", 0.0f}}, NaiveProduct(a, b), 1e-5);
}

TEST(Gemm, DepthZeroLeavesTheBias) {
  const Tensor a = RandomTensor(DType::kFloat, {4, 0}, 1);
  const Tensor b = RandomTensor(DType::kFloat, {0, 3}, 2);
  const Tensor c = RandomTensor(DType::kFloat, {4, 3}, 3);
  ExpectRuns("Gemm", {Fed(a), Fed(b), Fed(c)}, {}, c.CastTo(DType::kDouble), 1e-6);
}

struct PermutedCase {
  Shape a, b;
  std::vector<int64_t> perm_a, perm_b, perm_y;
};

const PermutedCase kPermuted[] = {
    {{4, 5}, {3, 5}, {0, 1}, {1, 0}, {0, 1}},
    {{5, 4}, {3, 5}, {1, 0}, {1, 0}, {1, 0}},
    {{2, 7, 3, 5}, {2, 9, 3, 5}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 1, 2, 3}},  // scores of heads kept inside
    {{2, 3, 7, 9}, {2, 9, 3, 5}, {0, 1, 2, 3}, {0, 2, 1, 3}, {0, 2, 1, 3}},  // values back to tokens x heads
    {{2, 3, 7, 9}, {2, 9, 3, 5}, {0, 1, 2, 3}, {0, 2, 1, 3}, {0, 2, 3, 1}},  // result transposed as well
    {{2, 7, 5}, {4, 5}, {0, 1, 2}, {1, 0}, {0, 1, 2}},
    {{5, 2, 7}, {5, 4}, {1, 2, 0}, {0, 1}, {2, 0, 1}},  // rows far apart in all of them
    {{5, 7}, {3, 5, 4}, {1, 0}, {0, 1, 2}, {1, 0, 2}},
};

TEST(PermutedMatMul, ReadsAndWritesThroughPermutations) {
  uint64_t seed = 40;
  for (const Precision& precision : kPrecisions) {
    for (const PermutedCase& c : kPermuted) {
      SCOPED_TRACE(ToString(c.a) + " x " + ToString(c.b));
      const Tensor a = RandomTensor(precision.dtype, c.a, ++seed);
      const Tensor b = RandomTensor(precision.dtype, c.b, ++seed);
      Tensor expected = NaiveProduct(Transposed(a, c.perm_a), Transposed(b, c.perm_b));
      const Tensor bias = RandomTensor(precision.dtype, {expected.shape().back()}, ++seed);
      for (int64_t i = 0; i < expected.elements(); ++i) {
        double& y = expected.values<double>()[i];
        y = y * 0.125 + bias.DoubleAt(i % bias.elements());
      }
      expected = Transposed(expected, c.perm_y);
      const Attributes attributes{{"perm_a", c.perm_a}, {"perm_b", c.perm_b}, {"perm_y", c.perm_y}, {"alpha", 0.125f}};
      ExpectRuns("onnxtrain.MatMul", {Fed(a), Fed(b), Fed(bias)}, attributes, expected, precision.tolerance);
    }
  }
}

TEST(PermutedMatMul, RefusesWhatDoesNotFit) {
  const auto refusal = [](const Shape& a, const Shape& b, Attributes attributes) {
    Graph graph(OpRegistry::Default());
    const std::vector<OpInput> inputs = {Fed(RandomTensor(DType::kFloat, a, 1)),
                                         Fed(RandomTensor(DType::kFloat, b, 2))};
    return AddOp(graph, "onnxtrain.MatMul", inputs, std::move(attributes)).message();
  };
  EXPECT_NE(refusal({2, 3}, {2, 3}, {}).find("cannot multiply"), std::string::npos);
  EXPECT_NE(refusal({2, 3, 4}, {3, 4, 2}, {}).find("do not broadcast"), std::string::npos);
  EXPECT_NE(refusal({2, 3}, {3, 4}, {{"perm_a", std::vector<int64_t>{0, 0}}}).find("permutation"), std::string::npos);
}

TEST(MatMulGradient, EveryBroadcast) {
  const std::pair<Shape, Shape> cases[] = {{{3, 4}, {4, 2}},
                                           {{3, 4, 5}, {5, 2}},
                                           {{4, 5}, {3, 5, 2}},
                                           {{2, 3, 4, 5}, {2, 3, 5, 2}},
                                           {{3, 1, 4, 2}, {2, 2, 3}},
                                           {{2, 3, 4, 5}, {1, 1, 5, 3}},
                                           {{1, 4, 5}, {3, 5, 2}},
                                           {{5}, {5}},
                                           {{5}, {3, 5, 2}},
                                           {{3, 2, 5}, {5}},
                                           {{5}, {5, 3}},
                                           {{1, 1, 3}, {3, 1}},
                                           {{1, 3, 4}, {4, 2}}};
  uint64_t seed = 60;
  for (const auto& [left, right] : cases) {
    SCOPED_TRACE(ToString(left) + " x " + ToString(right));
    ExpectOpGradient(
        "MatMul", {Fed(RandomTensor(DType::kDouble, left, ++seed)), Fed(RandomTensor(DType::kDouble, right, ++seed))});
  }
}

TEST(GemmGradient, TransposesScalesAndShapesOfC) {
  const Shape shapes_of_c[] = {{}, {1}, {3}, {1, 3}, {4, 1}, {4, 3}};
  uint64_t seed = 80;
  for (int64_t trans_a : {0, 1}) {
    for (int64_t trans_b : {0, 1}) {
      for (const Shape& shape_of_c : shapes_of_c) {
        SCOPED_TRACE(std::to_string(trans_a) + std::to_string(trans_b) + ToString(shape_of_c));
        ExpectOpGradient("Gemm",
                         {Fed(RandomTensor(DType::kDouble, trans_a ? Shape{5, 4} : Shape{4, 5}, ++seed)),
                          Fed(RandomTensor(DType::kDouble, trans_b ? Shape{3, 5} : Shape{5, 3}, ++seed)),
                          Fed(RandomTensor(DType::kDouble, shape_of_c, ++seed))},
                         {{"transA", trans_a}, {"transB", trans_b}, {"alpha", 0.5f}, {"beta", 0.25f}});
      }
    }
  }
}

TEST(PermutedMatMulGradient, EveryPermutation) {
  uint64_t seed = 100;
  for (const PermutedCase& c : kPermuted) {
    SCOPED_TRACE(ToString(c.a) + " x " + ToString(c.b));
    const int64_t columns = c.b[c.perm_b.back()];
    ExpectOpGradient("onnxtrain.MatMul",
                     {Fed(RandomTensor(DType::kDouble, c.a, ++seed)), Fed(RandomTensor(DType::kDouble, c.b, ++seed)),
                      Fed(RandomTensor(DType::kDouble, {columns}, ++seed))},
                     {{"perm_a", c.perm_a}, {"perm_b", c.perm_b}, {"perm_y", c.perm_y}, {"alpha", 0.5f}});
  }
}

}  // namespace
}  // namespace onnxtrain
