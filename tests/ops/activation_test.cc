// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/gradient_check.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Case {
  std::string op;
  Attributes attributes;
  std::function<long double(long double)> value;
  double tolerance = 3e-7;  // of float, relative to max(1, |y|)
};

long double Logistic(long double x) { return 1 / (1 + std::exp(-x)); }
long double SoftplusOf(long double x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0L); }

std::vector<Case> Cases() {
  const long double alpha = 1.6732632423543772L, gamma = 1.0507009873554805L;
  return {
      {"Relu", {}, [](long double x) { return std::max(x, 0.0L); }},
      {"Sigmoid", {}, Logistic},
      {"Tanh", {}, [](long double x) { return std::tanh(x); }},
      {"Erf", {}, [](long double x) { return std::erf(x); }},
      {"Gelu", {}, [](long double x) { return x * (1 + std::erf(x / std::sqrt(2.0L))) / 2; }},
      {"Gelu",
       {{"approximate", std::string("tanh")}},
       [](long double x) {
         return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846L) * (x + 0.044715L * x * x * x)));
       },
       6e-7},
      {"LeakyRelu", {}, [](long double x) { return x < 0 ? 0.01L * x : x; }},
      {"LeakyRelu", {{"alpha", 0.3f}}, [](long double x) { return x < 0 ? 0.3L * x : x; }},
      {"Elu", {{"alpha", 1.5f}}, [](long double x) { return x < 0 ? 1.5L * std::expm1(x) : x; }},
      {"Selu", {}, [=](long double x) { return gamma * (x < 0 ? alpha * std::expm1(x) : x); }, 5e-7},
      {"Celu", {{"alpha", 2.0f}}, [](long double x) { return x < 0 ? 2 * std::expm1(x / 2) : x; }, 5e-7},
      {"HardSigmoid", {}, [](long double x) { return std::clamp(0.2L * x + 0.5L, 0.0L, 1.0L); }},
      {"HardSwish", {}, [](long double x) { return x * std::clamp(x / 6 + 0.5L, 0.0L, 1.0L); }, 6e-7},
      {"Softplus", {}, SoftplusOf},
      {"Softsign", {}, [](long double x) { return x / (1 + std::abs(x)); }},
      {"Mish", {}, [](long double x) { return x * std::tanh(SoftplusOf(x)); }, 5e-7},
      {"Swish", {{"alpha", 1.25f}}, [](long double x) { return x * Logistic(1.25L * x); }, 5e-7},
      {"ThresholdedRelu", {{"alpha", 0.5f}}, [](long double x) { return x > 0.5L ? x : 0.0L; }},
  };
}

Tensor Expected(const Case& test, const Tensor& x) {
  Tensor y(TensorType{DType::kDouble, x.shape()});
  for (int64_t i = 0; i < x.elements(); ++i) {
    y.values<double>()[static_cast<size_t>(i)] = static_cast<double>(test.value(x.DoubleAt(i)));
  }
  return y.CastTo(x.dtype());
}

TEST(ActivationTest, MatchesReference) {
  for (const Case& test : Cases()) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{7, 3}, Shape{5, 4099}, Shape{70001}}) {
      SCOPED_TRACE(test.op + " " + ToString(shape));
      const Tensor x = RandomTensor(DType::kFloat, shape, 11, -9, 9);
      ExpectNear(RunOp(test.op, {Fed(x)}, test.attributes)[0], Expected(test, x), test.tolerance);
      const Tensor wide = x.CastTo(DType::kDouble);
      ExpectNear(RunOp(test.op, {Fed(wide)}, test.attributes)[0], Expected(test, wide), 1e-14);
    }
  }
}

TEST(ActivationTest, GradientsMatchFiniteDifferences) {
  for (const Case& test : Cases()) {
    const Tensor x = RandomTensor(DType::kDouble, {3, 11}, 5, -4, 4);
    ExpectOpGradient(test.op, {Fed(x)}, test.attributes);
  }
}

TEST(ActivationTest, FloatGradientIsDoubleGradient) {
  for (const Case& test : Cases()) {
    SCOPED_TRACE(test.op);
    const Tensor x = RandomTensor(DType::kFloat, {9001}, 6, -9, 9);
    const Tensor dy = RandomTensor(DType::kFloat, {9001}, 7);
    const Tensor narrow = OpGradients(test.op, {Fed(x)}, dy, test.attributes)[0];
    const Tensor wide =
        OpGradients(test.op, {Fed(x.CastTo(DType::kDouble))}, dy.CastTo(DType::kDouble), test.attributes)[0];
    ExpectNear(narrow, wide.CastTo(DType::kFloat), 3e-6);
  }
}

TEST(ActivationTest, KinksAreAsPinned) {
  const auto gradient_at = [](const std::string& op, double x, Attributes attributes = {}) {
    const Tensor point = Tensor::FromVector<double>({1}, {x});
    return OpGradients(op, {Fed(point)}, Tensor::FromVector<double>({1}, {1.0}), attributes)[0].DoubleAt(0);
  };
  EXPECT_EQ(gradient_at("Relu", 0), 0);
  EXPECT_EQ(gradient_at("LeakyRelu", 0, {{"alpha", 0.25f}}), 0.25);
  EXPECT_EQ(gradient_at("HardSigmoid", -2.5), 0);
  EXPECT_EQ(gradient_at("HardSigmoid", 2.5), 0);
  EXPECT_EQ(gradient_at("HardSwish", -3), 0);
  EXPECT_EQ(gradient_at("HardSwish", 3), 1);
  EXPECT_EQ(gradient_at("ThresholdedRelu", 1), 0);
  EXPECT_EQ(gradient_at("Elu", 0, {{"alpha", 0.5f}}), 0.5);
}

TEST(ActivationTest, InfinitiesAndNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::FromVector<float>({5}, {-kInfinity, kInfinity, nan, -200.0f, 200.0f});
  const auto run = [&](const char* op) { return RunOp(op, {Fed(x)})[0]; };
  ExpectNear(run("Relu"), Tensor::FromVector<float>({5}, {0, kInfinity, nan, 0, 200}), 0);
  ExpectNear(run("Sigmoid"), Tensor::FromVector<float>({5}, {0, 1, nan, 0, 1}), 0);
  ExpectNear(run("Tanh"), Tensor::FromVector<float>({5}, {-1, 1, nan, -1, 1}), 0);
  ExpectNear(run("Erf"), Tensor::FromVector<float>({5}, {-1, 1, nan, -1, 1}), 0);
  ExpectNear(run("Softplus"), Tensor::FromVector<float>({5}, {0, kInfinity, nan, 0, 200}), 0);
  ExpectNear(run("Elu"), Tensor::FromVector<float>({5}, {-1, kInfinity, nan, -1, 200}), 0);
}

TEST(ActivationTest, PReluBroadcastsItsSlope) {
  const Tensor x = Tensor::FromVector<float>({2, 3}, {-1, 2, -3, 4, -5, 6});
  const Tensor slope = Tensor::FromVector<float>({3}, {0.5f, 1, 2});
  ExpectIdentical(RunOp("PRelu", {Fed(x), Fed(slope)})[0], Tensor::FromVector<float>({2, 3}, {-0.5f, 2, -6, 4, -5, 6}));
  const Tensor wide = RandomTensor(DType::kDouble, {2, 3, 4}, 3);
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{4}, Shape{3, 1}, Shape{2, 3, 4}}) {
    ExpectOpGradient("PRelu", {Fed(wide), Fed(RandomTensor(DType::kDouble, shape, 4))});
  }
}

// Largest error in units in the last place of the result, over a dense sample of the interval.
double WorstUlps(const std::string& op, double low, double high, const std::function<double(double)>& exact) {
  Tensor x(TensorType{DType::kFloat, {200003}});
  for (size_t i = 0; i < x.values<float>().size(); ++i) {
    x.values<float>()[i] = static_cast<float>(low + (high - low) * static_cast<double>(i) / 200002.0);
  }
  const Tensor y = RunOp(op, {Fed(x)})[0];
  double worst = 0;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const double expected = exact(x.DoubleAt(i));
    const float rounded = static_cast<float>(expected);
    const double ulp = std::nextafter(std::abs(rounded), kInfinity) - std::abs(rounded);
    worst = std::max(worst, std::abs(y.DoubleAt(i) - expected) / std::max(ulp, 1.2e-38 * 1.2e-7));
  }
  return worst;
}

TEST(ActivationTest, SinglePrecisionFunctionsAreAccurate) {
  EXPECT_LE(WorstUlps("Exp", -86, 88.5, [](double x) { return std::exp(x); }), 2);
  EXPECT_LE(WorstUlps("Exp", -1, 1, [](double x) { return std::exp(x); }), 2);
  EXPECT_LE(WorstUlps("Log", 1e-6, 4, [](double x) { return std::log(x); }), 2);
  EXPECT_LE(WorstUlps("Log", 1e-44, 1e-37, [](double x) { return std::log(x); }), 2);
  EXPECT_LE(WorstUlps("Log", 1, 1e30, [](double x) { return std::log(x); }), 2);
  EXPECT_LE(WorstUlps("Erf", -5, 5, [](double x) { return std::erf(x); }), 5);
  EXPECT_LE(WorstUlps("Tanh", -10, 10, [](double x) { return std::tanh(x); }), 5);
  EXPECT_LE(WorstUlps("Tanh", -0.1, 0.1, [](double x) { return std::tanh(x); }), 3);
  EXPECT_LE(WorstUlps("Sigmoid", -80, 20, [](double x) { return 1 / (1 + std::exp(-x)); }), 3);
  EXPECT_LE(WorstUlps("Softplus", -80, 20, [](double x) { return std::log1p(std::exp(x)); }), 3);
}

}  // namespace
}  // namespace onnxtrain
