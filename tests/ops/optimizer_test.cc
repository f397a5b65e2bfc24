// SPDX-License-Identifier: Apache-2.0
// Optimizers against the formulas of PyTorch written plainly in double, step control, schedules.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "graph/graph_builder.h"
#include "graph/op_registry.h"
#include "runtime/math/learning_rate.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

std::vector<double> Random(int64_t count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = normal(generator);
  return values;
}

Tensor AsTensor(const std::vector<double>& values, DType dtype) {
  return Tensor::FromVector<double>({static_cast<int64_t>(values.size())}, values).CastTo(dtype);
}

struct Scalars {
  double rate = 0.01;
  double grad_scale = 0.25;
  int64_t step = 0;
  bool apply = true;
};

std::vector<OpInput> Inputs(const std::vector<Tensor>& arrays, const Scalars& scalars) {
  std::vector<OpInput> inputs;
  for (const Tensor& array : arrays) inputs.push_back(Fed(array));
  inputs.push_back(Fed(Tensor::Scalar(scalars.rate)));
  inputs.push_back(Fed(Tensor::Scalar(scalars.grad_scale)));
  inputs.push_back(Fed(Tensor::Scalar(scalars.step)));
  inputs.push_back(Fed(Tensor::Scalar(scalars.apply)));
  return inputs;
}

// PyTorch's single-tensor AdamW and Adam, amsgrad off.
void AdamReference(bool decoupled, std::vector<double>& w, const std::vector<double>& grad, std::vector<double>& m,
                   std::vector<double>& v, const Scalars& s, double decay) {
  const double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, t = static_cast<double>(s.step) + 1;
  for (size_t i = 0; i < w.size(); ++i) {
    double g = grad[i] * s.grad_scale;
    if (decoupled) {
      w[i] -= s.rate * decay * w[i];
    } else {
      g += decay * w[i];
    }
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    const double denominator = std::sqrt(v[i]) / std::sqrt(1 - std::pow(beta2, t)) + epsilon;
    w[i] -= s.rate / (1 - std::pow(beta1, t)) * m[i] / denominator;
  }
}

double Distance(const Tensor& found, const std::vector<double>& expected) {
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(found.DoubleAt(static_cast<int64_t>(i)) - expected[i]));
  }
  return largest;
}

class AdamOnSizes : public testing::TestWithParam<std::tuple<int64_t, DType, bool>> {};

TEST_P(AdamOnSizes, FollowsPyTorchOverSteps) {
  const auto [count, dtype, decoupled] = GetParam();
  const Attributes attributes{{"beta1", 0.9f}, {"beta2", 0.95f}, {"epsilon", 1e-8f}, {"weight_decay", 0.1f}};
  std::vector<double> w = Random(count, 1), m(w.size()), v(w.size());
  Tensor tw = AsTensor(w, dtype), tm = AsTensor(m, dtype), tv = AsTensor(v, dtype);
  for (int64_t step = 0; step < 5; ++step) {
    const std::vector<double> g = Random(count, 100 + static_cast<uint64_t>(step));
    const Scalars scalars{0.01, 0.25, step, true};
    AdamReference(decoupled, w, g, m, v, scalars, 0.1);
    const std::vector<Tensor> outputs = RunOp(decoupled ? "onnxtrain.AdamW" : "onnxtrain.Adam",
                                              Inputs({tw, AsTensor(g, dtype), tm, tv}, scalars), attributes, 3);
    ASSERT_EQ(outputs.size(), 3u);
    tw = outputs[0], tm = outputs[1], tv = outputs[2];
  }
  const double tolerance = dtype == DType::kDouble ? 1e-14 : 2e-6;
  EXPECT_LE(Distance(tw, w), tolerance);
  EXPECT_LE(Distance(tm, m), tolerance);
  EXPECT_LE(Distance(tv, v), tolerance);
}

INSTANTIATE_TEST_SUITE_P(Sizes, AdamOnSizes,
                         testing::Combine(testing::Values<int64_t>(0, 1, 15, 17, 40001),
                                          testing::Values(DType::kFloat, DType::kDouble), testing::Bool()));

TEST(SgdTest, FollowsPyTorchWithMomentumAndNesterov) {
  for (bool nesterov : {false, true}) {
    const Attributes attributes{{"momentum", 0.9f}, {"weight_decay", 1e-4f}, {"nesterov", int64_t{nesterov}}};
    std::vector<double> w = Random(1001, 3), buffer;
    Tensor tw = AsTensor(w, DType::kDouble), tm = AsTensor(std::vector<double>(w.size()), DType::kDouble);
    for (int64_t step = 0; step < 4; ++step) {
      const std::vector<double> grad = Random(1001, 50 + static_cast<uint64_t>(step));
      std::vector<double> g(w.size());
      for (size_t i = 0; i < w.size(); ++i) g[i] = grad[i] * 0.25 + 1e-4 * w[i];
      if (buffer.empty())
        buffer = g;  // PyTorch: the first buffer is the gradient itself
      else
        for (size_t i = 0; i < w.size(); ++i) buffer[i] = 0.9 * buffer[i] + g[i];
      for (size_t i = 0; i < w.size(); ++i) w[i] -= 0.01 * (nesterov ? g[i] + 0.9 * buffer[i] : buffer[i]);
      const std::vector<Tensor> outputs = RunOp(
          "onnxtrain.SGD", Inputs({tw, AsTensor(grad, DType::kDouble), tm}, {0.01, 0.25, step, true}), attributes, 2);
      ASSERT_EQ(outputs.size(), 2u);
      tw = outputs[0], tm = outputs[1];
    }
    EXPECT_LE(Distance(tw, w), 1e-14) << "nesterov " << nesterov;
  }
}

TEST(SgdTest, WithoutMomentumKeepsNoState) {
  Graph graph(OpRegistry::Default());
  std::vector<OpInput> inputs = Inputs({AsTensor({1, 2, 3}, DType::kFloat), AsTensor({4, 8, -4}, DType::kFloat)}, {});
  inputs.insert(inputs.begin() + 2, Omitted());
  const std::vector<Tensor> outputs = RunOp("onnxtrain.SGD", inputs, {}, 1);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_LE(Distance(outputs[0], {0.99, 1.98, 3.01}), 1e-6);
}

TEST(OptimizerTest, AStepThatIsNotAppliedKeepsEveryBit) {
  const Tensor w = AsTensor(Random(100, 1), DType::kFloat);
  const Tensor m = AsTensor(Random(100, 2), DType::kFloat);
  const Tensor v = AsTensor(Random(100, 3), DType::kFloat);
  const Tensor nan = AsTensor(std::vector<double>(100, std::numeric_limits<double>::quiet_NaN()), DType::kFloat);
  const std::vector<Tensor> outputs =
      RunOp("onnxtrain.AdamW", Inputs({w, nan, m, v}, {0.01, 0.25, 3, false}), {{"weight_decay", 0.1f}}, 3);
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_TRUE(outputs[0].Identical(w));
  EXPECT_TRUE(outputs[1].Identical(m));
  EXPECT_TRUE(outputs[2].Identical(v));
}

TEST(StepControlTest, DividesByTheGlobalWeightAndClips) {
  const Tensor totals = Tensor::FromVector<double>({4}, {12.0, 8.0, 0.0, 16.0 * 64.0});  // norm 4 after division
  const std::vector<Tensor> plain = RunOp("onnxtrain.StepControl", {Fed(totals)}, {}, 4);
  ASSERT_EQ(plain.size(), 4u);
  EXPECT_DOUBLE_EQ(plain[0].DoubleAt(0), 1.5);
  EXPECT_DOUBLE_EQ(plain[1].DoubleAt(0), 4.0);
  EXPECT_DOUBLE_EQ(plain[2].DoubleAt(0), 1.0 / 8.0);
  EXPECT_EQ(plain[3].IntAt(0), 1);
  const std::vector<Tensor> clipped = RunOp("onnxtrain.StepControl", {Fed(totals)}, {{"clip", 1.0f}}, 4);
  EXPECT_DOUBLE_EQ(clipped[2].DoubleAt(0), 1.0 / (4.0 + 1e-6) / 8.0);
  const std::vector<Tensor> summed = RunOp("onnxtrain.StepControl", {Fed(totals)}, {{"gradient_multiplier", 2.0f}}, 4);
  EXPECT_DOUBLE_EQ(summed[2].DoubleAt(0), 2.0 / 8.0);
}

TEST(StepControlTest, RefusesToApplyWhatIsNotFiniteFaultyOrEmpty) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const std::vector<double>& totals : std::vector<std::vector<double>>{
           {nan, 8, 0, 1}, {inf, 8, 0, 1}, {1, 8, 1, 1}, {1, 8, 0, nan}, {1, 8, 0, inf}, {0, 0, 0, 0}}) {
    const std::vector<Tensor> outputs =
        RunOp("onnxtrain.StepControl", {Fed(Tensor::FromVector<double>({4}, totals))}, {}, 4);
    ASSERT_EQ(outputs.size(), 4u);
    EXPECT_EQ(outputs[3].IntAt(0), 0);
  }
}

TEST(SquaredNormTest, SumsAllInputsInDouble) {
  for (int64_t count : {int64_t{0}, int64_t{1}, int64_t{9}, int64_t{32769}, int64_t{100003}}) {
    const std::vector<double> a = Random(count, 7), b = Random(count + 3, 8);
    double expected = 0;
    for (double value : a) expected += value * value;
    for (double value : b) expected += value * value;
    const std::vector<Tensor> outputs =
        RunOp("onnxtrain.SquaredNorm", {Fed(AsTensor(a, DType::kDouble)), Fed(AsTensor(b, DType::kDouble))}, {}, 1);
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_NEAR(outputs[0].DoubleAt(0), expected, 1e-9 * (1 + expected));
  }
}

TEST(LearningRateTest, FollowsTheWrittenFormulas) {
  using math::LearningRateAt;
  using math::LearningRateOptions;
  using math::Schedule;
  LearningRateOptions cosine{Schedule::kCosine, 1.0, 0.1, 10, 110};
  EXPECT_DOUBLE_EQ(LearningRateAt(cosine, 0), 0.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(cosine, 9), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(cosine, 10), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(cosine, 60), 0.55);
  EXPECT_DOUBLE_EQ(LearningRateAt(cosine, 110), 0.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(cosine, 500), 0.1);
  LearningRateOptions linear{Schedule::kLinear, 1.0, 0.0, 0, 4};
  EXPECT_DOUBLE_EQ(LearningRateAt(linear, 1), 0.75);
  LearningRateOptions step{Schedule::kStep, 1.0, 0.0, 2, 0, 3, 0.5};
  EXPECT_DOUBLE_EQ(LearningRateAt(step, 4), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(step, 5), 0.5);
  EXPECT_DOUBLE_EQ(LearningRateAt(step, 8), 0.25);
  LearningRateOptions wsd{Schedule::kWsd, 1.0, 0.2, 0, 100, 1, 0.1, 10};
  EXPECT_DOUBLE_EQ(LearningRateAt(wsd, 90), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(wsd, 95), 0.6);
}

}  // namespace
}  // namespace onnxtrain
