// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "graph/op_registry.h"
#include "tests/support/gradient_check.h"
#include "tests/support/lifted_op.h"
#include "tests/support/naive_reference.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

using Fold = std::function<double(const std::vector<double>&)>;

double Sum(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum;
}
double SumOf(const std::vector<double>& values, double (*function)(double)) {
  double sum = 0;
  for (double value : values) sum += function(value);
  return sum;
}

struct Case {
  const char* op;
  Fold fold;
  double low, high;
};

std::vector<Case> Cases() {
  const auto square = [](double x) { return x * x; };
  const auto absolute = [](double x) { return std::abs(x); };
  const auto exponential = [](double x) { return std::exp(x); };
  return {
      {"ReduceSum", Sum, -2, 2},
      {"ReduceMean", [](const auto& v) { return Sum(v) / static_cast<double>(v.size()); }, -2, 2},
      {"ReduceSumSquare", [=](const auto& v) { return SumOf(v, square); }, -2, 2},
      {"ReduceL1", [=](const auto& v) { return SumOf(v, absolute); }, -2, 2},
      {"ReduceL2", [=](const auto& v) { return std::sqrt(SumOf(v, square)); }, -2, 2},
      {"ReduceLogSum", [](const auto& v) { return std::log(Sum(v)); }, 0.5, 2},
      {"ReduceLogSumExp", [=](const auto& v) { return std::log(SumOf(v, exponential)); }, -2, 2},
      {"ReduceMax", [](const auto& v) { return *std::max_element(v.begin(), v.end()); }, -2, 2},
      {"ReduceMin", [](const auto& v) { return *std::min_element(v.begin(), v.end()); }, -2, 2},
      {"ReduceProd",
       [](const auto& v) {
         double p = 1;
         for (double x : v) p *= x;
         return p;
       },
       0.9, 1.1},
  };
}

// The naive fold in double, with or without the reduced axes.
Tensor Reduced(const Tensor& x, const std::vector<int64_t>& axes, bool keepdims, const Fold& fold) {
  Shape kept = x.shape(), result;
  for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  std::vector<std::vector<double>> groups(static_cast<size_t>(ElementsOf(kept)));
  for (int64_t i = 0; i < x.elements(); ++i) {
    groups[static_cast<size_t>(FlattenBroadcast(Unflatten(i, x.shape()), kept))].push_back(x.DoubleAt(i));
  }
  for (size_t axis = 0; axis < kept.size(); ++axis) {
    const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
    if (!reduced || keepdims) result.push_back(kept[axis]);
  }
  return FromIndices(
             x.dtype(), kept,
             [&](const Index& index) { return fold(groups[static_cast<size_t>(FlattenBroadcast(index, kept))]); })
      .Reshaped(result);
}

const std::vector<std::pair<Shape, std::vector<int64_t>>> kShapes = {
    {{7}, {0}},         {{1}, {0}},          {{5, 9}, {1}},          {{5, 9}, {0}},          {{5, 9}, {0, 1}},
    {{3, 4, 5}, {1}},   {{3, 4, 5}, {0, 2}}, {{2, 3, 4, 5}, {1, 3}}, {{2, 3, 4, 5}, {0, 2}}, {{1, 6, 1}, {0, 2}},
    {{3, 100001}, {1}}, {{3000, 33}, {0}},   {{2, 700, 70}, {0, 1}}, {{70, 1200}, {0}}};

TEST(ReductionTest, MatchesReference) {
  for (const Case& test : Cases()) {
    for (const auto& [shape, axes] : kShapes) {
      if (std::string(test.op) == "ReduceProd" && ElementsOf(shape) > 1000) continue;
      for (DType dtype : {DType::kFloat, DType::kDouble}) {
        SCOPED_TRACE(std::string(test.op) + ToString(TensorType{dtype, shape}) + " over " + ToString(axes));
        const Tensor x = RandomTensor(dtype, shape, 31, test.low, test.high);
        const double tolerance = dtype == DType::kFloat ? 5e-6 : 1e-11;
        const bool keepdims = ElementsOf(shape) % 2 == 0;
        ExpectNear(RunOp(test.op, {Fed(x), Constant(Tensor::Ints(axes))}, {{"keepdims", int64_t{keepdims}}})[0],
                   Reduced(x, axes, keepdims, test.fold), tolerance);
      }
    }
  }
}

TEST(ReductionTest, IntegersReduceExactly) {
  for (const char* op : {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL1"}) {
    for (const Case& test : Cases()) {
      if (std::string(op) != test.op) continue;
      for (DType dtype : {DType::kInt64, DType::kInt32}) {
        const Tensor x = RandomTensor(dtype, {3, 4, 5}, 32, -3, 3);
        for (const std::vector<int64_t>& axes : {std::vector<int64_t>{1}, {0, 2}, {0, 1, 2}}) {
          ExpectIdentical(RunOp(op, {Fed(x), Constant(Tensor::Ints(axes))})[0], Reduced(x, axes, true, test.fold));
        }
      }
    }
  }
}

TEST(ReductionTest, AxesMayBeAbsentNegativeOrEmpty) {
  const Tensor x = RandomTensor(DType::kFloat, {2, 3, 4}, 33);
  const Tensor all = Reduced(x, {0, 1, 2}, true, Sum);
  ExpectNear(RunOp("ReduceSum", {Fed(x)})[0], all, 1e-6);
  ExpectNear(RunOp("ReduceSum", {Fed(x), Constant(Tensor::Ints({}))})[0], all, 1e-6);
  ExpectIdentical(RunOp("ReduceSum", {Fed(x), Constant(Tensor::Ints({}))}, {{"noop_with_empty_axes", int64_t{1}}})[0],
                  x);
  ExpectNear(RunOp("ReduceSum", {Fed(x), Constant(Tensor::Ints({-1}))})[0], Reduced(x, {2}, true, Sum), 1e-6);
  const std::vector<int64_t> axes{1};
  for (const char* op : {"ReduceSum", "ReduceMean"}) {
    const Tensor lifted = RunLiftedOp(op, 11, {Fed(x)}, {{"axes", axes}, {"keepdims", int64_t{0}}})[0];
    ExpectIdentical(lifted, RunOp(op, {Fed(x), Constant(Tensor::Ints(axes))}, {{"keepdims", int64_t{0}}})[0]);
  }
}

TEST(ReductionTest, NothingReducesToTheNeutralElement) {
  const Tensor x = RandomTensor(DType::kFloat, {2, 0}, 1);
  const float infinity = std::numeric_limits<float>::infinity();
  const auto run = [&](const char* op) { return RunOp(op, {Fed(x), Constant(Tensor::Ints({1}))})[0]; };
  ExpectNear(run("ReduceSum"), Tensor::FromVector<float>({2, 1}, {0, 0}), 0);
  ExpectNear(run("ReduceProd"), Tensor::FromVector<float>({2, 1}, {1, 1}), 0);
  ExpectNear(run("ReduceMax"), Tensor::FromVector<float>({2, 1}, {-infinity, -infinity}), 0);
  ExpectNear(run("ReduceMin"), Tensor::FromVector<float>({2, 1}, {infinity, infinity}), 0);
  ExpectNear(run("ReduceLogSumExp"), Tensor::FromVector<float>({2, 1}, {-infinity, -infinity}), 0);
}

TEST(ReductionTest, NaNAndInfinityStay) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  Tensor x(TensorType{DType::kFloat, {3, 200}});
  x.values<float>()[130] = nan;
  x.values<float>()[333] = infinity;
  const auto run = [&](const char* op) { return RunOp(op, {Fed(x), Constant(Tensor::Ints({1}))})[0]; };
  ExpectNear(run("ReduceMax"), Tensor::FromVector<float>({3, 1}, {nan, infinity, 0}), 0);
  ExpectNear(run("ReduceSum"), Tensor::FromVector<float>({3, 1}, {nan, infinity, 0}), 0);
  const Tensor large = Tensor::FromVector<float>({2}, {1000, 1000});
  ExpectNear(RunOp("ReduceLogSumExp", {Fed(large)})[0], Tensor::FromVector<float>({1}, {1000 + std::log(2.0f)}), 1e-6);
}

TEST(ReductionTest, SinglePrecisionSumsOfManyTermsStayAccurate) {
  Tensor x(TensorType{DType::kFloat, {1, 3000001}});
  std::fill(x.values<float>().begin(), x.values<float>().end(), 0.1f);
  const double exact = 3000001.0 * static_cast<double>(0.1f);
  for (const Shape& shape : {Shape{1, 3000001}, Shape{3000001, 1}}) {
    const Tensor sum = RunOp("ReduceSum", {Fed(x.Reshaped(shape))}, {{"keepdims", int64_t{0}}})[0];
    EXPECT_NEAR(sum.DoubleAt(0) / exact, 1, 1e-6);
  }
}

TEST(ReductionTest, Gradients) {
  for (const Case& test : Cases()) {
    for (const auto& [shape, axes] : kShapes) {
      if (ElementsOf(shape) > 200) continue;
      for (int64_t keepdims : {0, 1}) {
        ExpectOpGradient(
            test.op, {Fed(RandomTensor(DType::kDouble, shape, 34, test.low, test.high)), Constant(Tensor::Ints(axes))},
            {{"keepdims", keepdims}});
      }
    }
  }
}

TEST(ReductionTest, GradientsAtTiesAndZeros) {
  const Tensor one = Tensor::FromVector<double>({1}, {1});
  const auto gradient = [&](const char* op, std::vector<double> values) {
    const Tensor x = Tensor::FromVector<double>({static_cast<int64_t>(values.size())}, values);
    return OpGradients(op, {Fed(x)}, one)[0];
  };
  ExpectIdentical(gradient("ReduceMax", {3, 1, 3, 3, 0}),
                  Tensor::FromVector<double>({5}, {1.0 / 3, 0, 1.0 / 3, 1.0 / 3, 0}));
  ExpectIdentical(gradient("ReduceMin", {1, 1}), Tensor::FromVector<double>({2}, {0.5, 0.5}));
  ExpectIdentical(gradient("ReduceL2", {0, 0}), Tensor::FromVector<double>({2}, {0, 0}));
  ExpectIdentical(gradient("ReduceL1", {-2, 0, 5}), Tensor::FromVector<double>({3}, {-1, 0, 1}));
  ExpectIdentical(gradient("ReduceProd", {2, 0, 5}), Tensor::FromVector<double>({3}, {0, 10, 0}));
  ExpectIdentical(gradient("ReduceProd", {0, 0, 5}), Tensor::FromVector<double>({3}, {0, 0, 0}));
}

TEST(ReductionTest, CumSumInEveryDirection) {
  for (int64_t exclusive : {0, 1}) {
    for (int64_t reverse : {0, 1}) {
      for (int64_t axis : {0, -1}) {
        const Attributes attributes{{"exclusive", exclusive}, {"reverse", reverse}};
        const size_t line = axis == 0 ? 0 : 1;
        const Tensor x = RandomTensor(DType::kFloat, {5, 7}, 35);
        const Tensor expected = FromIndices(DType::kFloat, {5, 7}, [&](const Index& index) {
          double sum = 0;
          for (int64_t i = 0; i < x.shape()[line]; ++i) {
            const int64_t ahead = reverse != 0 ? i - index[line] : index[line] - i;
            Index from = index;
            from[line] = i;
            if (ahead > 0 || (ahead == 0 && exclusive == 0)) sum += At(x, from);
          }
          return sum;
        });
        ExpectNear(RunOp("CumSum", {Fed(x), Constant(Tensor::Scalar(axis))}, attributes)[0], expected, 1e-6);
        ExpectOpGradient("CumSum", {Fed(RandomTensor(DType::kDouble, {3, 4}, 36)), Constant(Tensor::Scalar(axis))},
                         attributes);
      }
    }
  }
}

}  // namespace
}  // namespace onnxtrain
