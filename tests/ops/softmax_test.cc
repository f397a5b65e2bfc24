// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/gradient_check.h"
#include "tests/support/lifted_op.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

// By the definition, in double, over `axis` (counted from the front).
Tensor NaiveSoftmax(const Tensor& x, size_t axis, bool logarithm) {
  Tensor y(TensorType{DType::kDouble, x.shape()});
  int64_t inner = 1;
  for (size_t i = axis + 1; i < x.shape().size(); ++i) inner *= x.shape()[i];
  const int64_t length = x.shape()[axis];
  for (int64_t flat = 0; flat < x.elements(); ++flat) {
    const int64_t first = flat / (inner * length) * inner * length + flat % inner;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t i = 0; i < length; ++i) largest = std::max(largest, x.DoubleAt(first + i * inner));
    for (int64_t i = 0; i < length; ++i) sum += std::exp(x.DoubleAt(first + i * inner) - largest);
    const double log = x.DoubleAt(flat) - largest - std::log(sum);
    y.values<double>()[flat] = logarithm ? log : std::exp(log);
  }
  return y;
}

struct Case {
  Shape shape;
  int64_t axis;
};
const Case kCases[] = {{{1}, 0},     {{7}, -1},        {{5, 1}, 1},       {{3, 33}, -1},
                       {{33, 3}, 0}, {{2, 17, 19}, 1}, {{2, 3, 4, 5}, 1}, {{2, 3, 4, 5}, -1},
                       {{0, 4}, 1},  {{4, 0}, 1},      {{130, 257}, 1},   {{2, 21, 17, 3}, 1}};

TEST(Softmax, MatchesItsDefinition) {
  uint64_t seed = 1;
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const Case& c : kCases) {
      for (bool logarithm : {false, true}) {
        SCOPED_TRACE(ToString(c.shape) + " axis " + std::to_string(c.axis) + (logarithm ? " log" : ""));
        const Tensor x = RandomTensor(dtype, c.shape, ++seed, -9, 9);
        const auto result = RunOp(logarithm ? "LogSoftmax" : "Softmax", {Fed(x)}, {{"axis", c.axis}});
        const size_t axis = c.axis < 0 ? c.shape.size() + c.axis : c.axis;
        ExpectNear(result[0].CastTo(DType::kDouble), NaiveSoftmax(x, axis, logarithm),
                   dtype == DType::kFloat ? 2e-6 : 1e-14);
      }
    }
  }
}

TEST(Softmax, MaskedScoresWeighNothing) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::FromVector<float>({2, 4}, {1, -1e9f, 1, -infinity, 3.4e38f, 3.4e38f, -3.4e38f, 0});
  const auto y = RunOp("Softmax", {Fed(x)});
  ExpectIdentical(y[0], Tensor::FromVector<float>({2, 4}, {0.5f, 0, 0.5f, 0, 0.5f, 0.5f, 0, 0}));
}

TEST(Softmax, NaNAndFullyMaskedRowsStayNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto y = RunOp("Softmax", {Fed(Tensor::FromVector<float>({2, 2}, {1, nan, -infinity, -infinity}))});
  for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(y[0].DoubleAt(i)));
}

TEST(Softmax, BeforeOpset13RunsOverAllAxesFromTheGivenOneOn) {
  const Tensor x = RandomTensor(DType::kDouble, {2, 3, 4}, 5);
  for (bool logarithm : {false, true}) {
    const char* op = logarithm ? "LogSoftmax" : "Softmax";
    const Tensor over_12 = NaiveSoftmax(x.Reshaped({2, 12}), 1, logarithm).Reshaped({2, 3, 4});
    ExpectNear(RunLiftedOp(op, 11, {Fed(x)})[0], over_12, 1e-14);
    ExpectNear(RunLiftedOp(op, 11, {Fed(x)}, {{"axis", int64_t{-2}}})[0], over_12, 1e-14);
    ExpectNear(RunLiftedOp(op, 7, {Fed(x)}, {{"axis", int64_t{0}}})[0],
               NaiveSoftmax(x.Reshaped({1, 24}), 1, logarithm).Reshaped({2, 3, 4}), 1e-14);
    ExpectNear(RunLiftedOp(op, 11, {Fed(x)}, {{"axis", int64_t{2}}})[0], NaiveSoftmax(x, 2, logarithm), 1e-14);
    ExpectNear(RunLiftedOp(op, 13, {Fed(x)})[0], NaiveSoftmax(x, 2, logarithm), 1e-14);
  }
}

TEST(SoftmaxGradient, MatchesFiniteDifferences) {
  uint64_t seed = 20;
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const Case& c : {Case{{5}, 0}, Case{{3, 7}, -1}, Case{{7, 3}, 0}, Case{{2, 5, 3}, 1}}) {
      SCOPED_TRACE(std::string(op) + ToString(c.shape));
      ExpectOpGradient(op, {Fed(RandomTensor(DType::kDouble, c.shape, ++seed))}, {{"axis", c.axis}});
    }
  }
}

TEST(SoftmaxGradient, SinglePrecisionAgreesWithDouble) {
  for (const char* op : {"onnxtrain.SoftmaxGrad", "onnxtrain.LogSoftmaxGrad"}) {
    for (const Case& c : {Case{{9, 65}, -1}, Case{{3, 21, 19}, 1}}) {
      const Tensor dy = RandomTensor(DType::kFloat, c.shape, 7);
      const Tensor y = RandomTensor(DType::kFloat, c.shape, 8, -3, 0);
      const auto single = RunOp(op, {Fed(dy), Fed(y)}, {{"axis", c.axis}});
      const auto wide = RunOp(op, {Fed(dy.CastTo(DType::kDouble)), Fed(y.CastTo(DType::kDouble))}, {{"axis", c.axis}});
      ExpectNear(single[0].CastTo(DType::kDouble), wide[0], 2e-5);
    }
  }
}

}  // namespace
}  // namespace onnxtrain
