// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "graph/op_registry.h"
#include "tests/support/gradient_check.h"
#include "tests/support/lifted_op.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

constexpr double kEpsilon = 1e-3;
const float kEpsilonAttribute = 1e-3f;

// A set of elements (flat indices) that share statistics, and for each its index into scale and bias.
struct Group {
  std::vector<int64_t> elements;
  std::vector<int64_t> parameters;
};

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments MomentsOf(const Tensor& x, const Group& group) {
  Moments moments;
  const double count = static_cast<double>(group.elements.size());
  for (int64_t i : group.elements) moments.mean += x.DoubleAt(i) / count;
  for (int64_t i : group.elements) moments.variance += std::pow(x.DoubleAt(i) - moments.mean, 2) / count;
  return moments;
}

Tensor Normalize(const Tensor& x, const Tensor& scale, const Tensor* bias, const std::vector<Group>& groups,
                 const std::vector<Moments>& moments) {
  Tensor y(TensorType{DType::kDouble, x.shape()});
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t k = 0; k < groups[g].elements.size(); ++k) {
      const int64_t i = groups[g].elements[k];
      const int64_t p = groups[g].parameters[k];
      y.values<double>()[i] =
          (x.DoubleAt(i) - moments[g].mean) / std::sqrt(moments[g].variance + kEpsilon) * scale.DoubleAt(p) +
          (bias == nullptr ? 0 : bias->DoubleAt(p));
    }
  }
  return y;
}

std::vector<Group> Rows(const Shape& shape, size_t axis) {
  const int64_t length = ElementsOf(std::span(shape).subspan(axis));
  std::vector<Group> groups(ElementsOf(std::span(shape).first(axis)));
  for (size_t r = 0; r < groups.size(); ++r) {
    for (int64_t i = 0; i < length; ++i) {
      groups[r].elements.push_back(static_cast<int64_t>(r) * length + i);
      groups[r].parameters.push_back(i);
    }
  }
  return groups;
}

std::vector<Group> Channels(const Shape& shape) {
  const int64_t channels = shape.size() < 2 ? 1 : shape[1];
  const int64_t inner = shape.size() < 3 ? 1 : ElementsOf(std::span(shape).subspan(2));
  std::vector<Group> groups(channels);
  for (int64_t i = 0; i < ElementsOf(shape); ++i) {
    const int64_t c = i / inner % channels;
    groups[c].elements.push_back(i);
    groups[c].parameters.push_back(c);
  }
  return groups;
}

std::vector<Group> ChannelGroups(const Shape& shape, int64_t count) {
  const int64_t inner = ElementsOf(std::span(shape).subspan(2));
  std::vector<Group> groups(shape[0] * count);
  for (int64_t i = 0; i < ElementsOf(shape); ++i) {
    const int64_t c = i / inner % shape[1];
    Group& group = groups[i / inner / shape[1] * count + c / (shape[1] / count)];
    group.elements.push_back(i);
    group.parameters.push_back(c);
  }
  return groups;
}

std::vector<Moments> AllMoments(const Tensor& x, const std::vector<Group>& groups) {
  std::vector<Moments> moments;
  for (const Group& group : groups) moments.push_back(MomentsOf(x, group));
  return moments;
}

struct RowCase {
  Shape shape;
  int64_t axis;
};
const RowCase kRows[] = {{{5, 7}, -1}, {{1, 1}, 1},     {{3, 4, 33}, 2}, {{3, 4, 5}, 1},
                         {{2, 3}, 0},  {{700, 65}, -1}, {{0, 4}, 1}};

size_t FrontAxis(const RowCase& c) { return c.axis < 0 ? c.shape.size() + c.axis : c.axis; }

TEST(LayerNormalization, MatchesItsDefinition) {
  uint64_t seed = 1;
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const RowCase& c : kRows) {
      SCOPED_TRACE(ToString(c.shape));
      const Shape normalized(c.shape.begin() + FrontAxis(c), c.shape.end());
      const Tensor x = RandomTensor(dtype, c.shape, ++seed, -1, 3);
      const Tensor scale = RandomTensor(dtype, normalized, ++seed);
      const Tensor bias = RandomTensor(dtype, normalized, ++seed);
      const auto groups = Rows(c.shape, FrontAxis(c));
      const auto moments = AllMoments(x, groups);
      const Attributes attributes{{"axis", c.axis}, {"epsilon", kEpsilonAttribute}};
      const double tolerance = dtype == DType::kFloat ? 1e-5 : 1e-13;
      const auto y = RunOp("LayerNormalization", {Fed(x), Fed(scale), Fed(bias)}, attributes, 3);
      ExpectNear(y[0].CastTo(DType::kDouble), Normalize(x, scale, &bias, groups, moments), tolerance);
      for (size_t r = 0; r < moments.size(); ++r) {
        EXPECT_NEAR(y[1].DoubleAt(r), moments[r].mean, 1e-5);
        EXPECT_NEAR(y[2].DoubleAt(r), 1 / std::sqrt(moments[r].variance + kEpsilon), 1e-4);
      }
      const auto without_bias = RunOp("LayerNormalization", {Fed(x), Fed(scale)}, attributes);
      ExpectNear(without_bias[0].CastTo(DType::kDouble), Normalize(x, scale, nullptr, groups, moments), tolerance);
    }
  }
}

TEST(LayerNormalization, ConstantRowsStayFinite) {
  const Tensor x = Tensor::FromVector<float>({1, 3}, {5, 5, 5});
  const Tensor one = Tensor::FromVector<float>({3}, {1, 1, 1});
  const auto y = RunOp("LayerNormalization", {Fed(x), Fed(one)}, {}, 3);
  ExpectIdentical(y[0], Tensor(TensorType{DType::kFloat, {1, 3}}));
  EXPECT_NEAR(y[2].DoubleAt(0), 1 / std::sqrt(1e-5), 1e-3);
}

TEST(LayerNormalization, LargeOffsetKeepsTheVariance) {
  Tensor x = RandomTensor(DType::kFloat, {3, 1000}, 4, 0, 1);
  for (float& value : x.values<float>()) value += 1000;
  const Tensor ones = RandomTensor(DType::kFloat, {1000}, 5, 1, 1.0000001);
  const auto groups = Rows({3, 1000}, 1);
  const auto y = RunOp("LayerNormalization", {Fed(x), Fed(ones)}, {{"epsilon", kEpsilonAttribute}});
  ExpectNear(y[0].CastTo(DType::kDouble), Normalize(x, ones, nullptr, groups, AllMoments(x, groups)), 5e-4);
}

TEST(RmsNormalization, MatchesItsDefinition) {
  uint64_t seed = 50;
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const RowCase& c : kRows) {
      SCOPED_TRACE(ToString(c.shape));
      const Tensor x = RandomTensor(dtype, c.shape, ++seed);
      const Tensor scale = RandomTensor(dtype, Shape(c.shape.begin() + FrontAxis(c), c.shape.end()), ++seed);
      const auto groups = Rows(c.shape, FrontAxis(c));
      auto moments = AllMoments(x, groups);
      for (Moments& m : moments) m = {0, m.variance + m.mean * m.mean};
      const auto y =
          RunOp("RMSNormalization", {Fed(x), Fed(scale)}, {{"axis", c.axis}, {"epsilon", kEpsilonAttribute}});
      ExpectNear(y[0].CastTo(DType::kDouble), Normalize(x, scale, nullptr, groups, moments),
                 dtype == DType::kFloat ? 1e-5 : 1e-13);
    }
  }
}

const Shape kImages[] = {{4, 3}, {1, 5}, {37, 19}, {2, 3, 5}, {3, 4, 2, 17}, {2, 1, 3, 2, 5}, {9}, {64, 33, 1}};

std::vector<OpInput> BatchInputs(DType dtype, const Shape& shape, uint64_t seed) {
  const Shape channels = {shape.size() < 2 ? 1 : shape[1]};
  return {Fed(RandomTensor(dtype, shape, seed, -1, 3)), Fed(RandomTensor(dtype, channels, seed + 1)),
          Fed(RandomTensor(dtype, channels, seed + 2)), Fed(RandomTensor(dtype, channels, seed + 3)),
          Fed(RandomTensor(dtype, channels, seed + 4, 0.2, 3))};
}

TEST(BatchNormalization, TrainsOnBatchStatisticsAndMovesTheRunningOnes) {
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const Shape& shape : kImages) {
      SCOPED_TRACE(ToString(shape));
      const auto inputs = BatchInputs(dtype, shape, 70);
      const Tensor& x = *inputs[0].tensor;
      const auto groups = Channels(shape);
      const auto moments = AllMoments(x, groups);
      const double tolerance = dtype == DType::kFloat ? 3e-5 : 1e-12;
      const auto y = RunOp("BatchNormalization", inputs,
                           {{"training_mode", int64_t{1}}, {"momentum", 0.75f}, {"epsilon", kEpsilonAttribute}}, 3);
      ExpectNear(y[0].CastTo(DType::kDouble), Normalize(x, *inputs[1].tensor, &*inputs[2].tensor, groups, moments),
                 tolerance);
      for (size_t c = 0; c < groups.size(); ++c) {
        EXPECT_NEAR(y[1].DoubleAt(c), 0.75 * inputs[3].tensor->DoubleAt(c) + 0.25 * moments[c].mean, tolerance);
        EXPECT_NEAR(y[2].DoubleAt(c), 0.75 * inputs[4].tensor->DoubleAt(c) + 0.25 * moments[c].variance, tolerance);
      }
    }
  }
}

TEST(BatchNormalization, InfersOnRunningStatistics) {
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const Shape& shape : kImages) {
      SCOPED_TRACE(ToString(shape));
      const auto inputs = BatchInputs(dtype, shape, 80);
      const auto groups = Channels(shape);
      std::vector<Moments> moments;
      for (size_t c = 0; c < groups.size(); ++c) {
        moments.push_back({inputs[3].tensor->DoubleAt(c), inputs[4].tensor->DoubleAt(c)});
      }
      const auto y = RunOp("BatchNormalization", inputs, {{"epsilon", kEpsilonAttribute}});
      ExpectNear(y[0].CastTo(DType::kDouble),
                 Normalize(*inputs[0].tensor, *inputs[1].tensor, &*inputs[2].tensor, groups, moments),
                 dtype == DType::kFloat ? 3e-5 : 1e-12);
    }
  }
}

TEST(BatchNormalization, BeforeOpset14FiveOutputsMeanTraining) {
  const auto inputs = BatchInputs(DType::kDouble, {4, 3, 2}, 90);
  const auto old = RunLiftedOp("BatchNormalization", 9, inputs, {}, 5);
  const auto now = RunOp("BatchNormalization", inputs, {{"training_mode", int64_t{1}}}, 3);
  for (size_t i : {0, 1, 2}) ExpectIdentical(old[i], now[i]);
  ExpectIdentical(RunLiftedOp("BatchNormalization", 7, inputs, {{"spatial", int64_t{1}}})[0],
                  RunOp("BatchNormalization", inputs)[0]);
  Graph graph(OpRegistry::Default());
  EXPECT_FALSE(AddLiftedOp(graph, "BatchNormalization", 7, inputs, {{"spatial", int64_t{0}}}).ok());
}

TEST(GroupNormalization, MatchesItsDefinition) {
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const auto& [shape, count] :
         {std::pair<Shape, int64_t>{{2, 6, 5}, 3}, {{1, 4, 3, 7}, 1}, {{3, 5, 2, 3}, 5}, {{2, 4}, 2}}) {
      SCOPED_TRACE(ToString(shape));
      auto inputs = BatchInputs(dtype, shape, 100);
      inputs.resize(3);
      const auto groups = ChannelGroups(shape, count);
      const Tensor expected = Normalize(*inputs[0].tensor, *inputs[1].tensor, &*inputs[2].tensor, groups,
                                        AllMoments(*inputs[0].tensor, groups));
      const double tolerance = dtype == DType::kFloat ? 2e-5 : 1e-12;
      const auto y = RunOp("GroupNormalization", inputs, {{"num_groups", count}, {"epsilon", kEpsilonAttribute}});
      ExpectNear(y[0].CastTo(DType::kDouble), expected, tolerance);
      if (count != shape[1] || shape.size() < 3) continue;
      const auto instance = RunOp("InstanceNormalization", inputs, {{"epsilon", kEpsilonAttribute}});
      ExpectNear(instance[0].CastTo(DType::kDouble), expected, tolerance);
    }
  }
}

TEST(NormalizationGradient, MatchesFiniteDifferences) {
  uint64_t seed = 120;
  const Attributes epsilon{{"epsilon", kEpsilonAttribute}};
  for (const RowCase& c : {RowCase{{3, 5}, -1}, RowCase{{2, 3, 4}, 1}, RowCase{{4, 2, 3}, 2}, RowCase{{5, 1}, 1}}) {
    SCOPED_TRACE(ToString(c.shape));
    const Shape normalized(c.shape.begin() + FrontAxis(c), c.shape.end());
    const Tensor x = RandomTensor(DType::kDouble, c.shape, ++seed);
    const Tensor scale = RandomTensor(DType::kDouble, normalized, ++seed);
    const Tensor bias = RandomTensor(DType::kDouble, normalized, ++seed);
    const Attributes attributes{{"axis", c.axis}, {"epsilon", kEpsilonAttribute}};
    ExpectOpGradient("LayerNormalization", {Fed(x), Fed(scale), Fed(bias)}, attributes);
    ExpectOpGradient("LayerNormalization", {Fed(x), Fed(scale)}, attributes);
    ExpectOpGradient("RMSNormalization", {Fed(x), Fed(scale)}, attributes);
  }
  for (const Shape& shape : {Shape{4, 3}, Shape{3, 2, 5}, Shape{2, 3, 2, 3}, Shape{5}}) {
    SCOPED_TRACE(ToString(shape));
    GradientCheckOptions options;
    options.without_gradient = {"x3", "x4"};
    const auto inputs = BatchInputs(DType::kDouble, shape, ++seed);
    ExpectOpGradient("BatchNormalization", inputs, epsilon, 1, options);
    Graph training(OpRegistry::Default());
    ASSERT_TRUE(AddOp(training, "BatchNormalization", inputs,
                      {{"epsilon", kEpsilonAttribute}, {"training_mode", int64_t{1}}}, 3)
                    .ok());
    for (const char* moved : {"y1", "y2"}) training.RemoveOutput(training.FindValue(moved));
    ExpectGradientMatchesFiniteDifference(training, FeedsOf(inputs), options);
  }
  for (const auto& [shape, count] : {std::pair<Shape, int64_t>{{2, 6, 3}, 3}, {{2, 4}, 2}, {{3, 2, 2, 2}, 2}}) {
    auto inputs = BatchInputs(DType::kDouble, shape, ++seed);
    inputs.resize(3);
    ExpectOpGradient("GroupNormalization", inputs, {{"num_groups", count}, {"epsilon", kEpsilonAttribute}});
    if (shape.size() > 2) ExpectOpGradient("InstanceNormalization", inputs, epsilon);
  }
}

TEST(NormalizationGradient, SinglePrecisionAgreesWithDouble) {
  const auto compare = [](const char* op, std::vector<OpInput> single, const Attributes& attributes, double tolerance) {
    SCOPED_TRACE(op);
    std::vector<OpInput> wide;
    for (const OpInput& input : single) wide.push_back(Fed(input.tensor->CastTo(DType::kDouble)));
    const auto a = RunOp(op, single, attributes, 3);
    const auto b = RunOp(op, wide, attributes, 3);
    for (size_t i : {0, 1, 2}) ExpectNear(a[i].CastTo(DType::kDouble), b[i], tolerance);
  };
  const Tensor dy = RandomTensor(DType::kFloat, {301, 130}, 1);
  const Tensor x = RandomTensor(DType::kFloat, {301, 130}, 2, 3, 5);
  const Tensor scale = RandomTensor(DType::kFloat, {130}, 3);
  compare("onnxtrain.LayerNormalizationGrad", {Fed(dy), Fed(x), Fed(scale)}, {}, 2e-5);
  compare("onnxtrain.BatchNormalizationGrad", {Fed(dy), Fed(x), Fed(scale)}, {}, 2e-5);
  const Shape image = {3, 26, 5, 7};
  compare("onnxtrain.BatchNormalizationGrad",
          {Fed(RandomTensor(DType::kFloat, image, 4)), Fed(RandomTensor(DType::kFloat, image, 5)),
           Fed(RandomTensor(DType::kFloat, {26}, 6)), Fed(RandomTensor(DType::kFloat, {26}, 7)),
           Fed(RandomTensor(DType::kFloat, {26}, 8, 0.5, 2))},
          {}, 2e-5);
  compare("onnxtrain.GroupNormalizationGrad",
          {Fed(RandomTensor(DType::kFloat, image, 4)), Fed(RandomTensor(DType::kFloat, image, 5)),
           Fed(RandomTensor(DType::kFloat, {26}, 6))},
          {{"num_groups", int64_t{13}}}, 2e-5);
}

TEST(GroupNormalization, BeforeOpset21TheScaleIsPerGroup) {
  const Tensor x = RandomTensor(DType::kDouble, {2, 6, 3}, 1);
  const Tensor scale = Tensor::FromVector<double>({3}, {1, 2, 3});
  const Tensor bias = Tensor::FromVector<double>({3}, {-1, 0, 1});
  const Tensor wide_scale = Tensor::FromVector<double>({6}, {1, 1, 2, 2, 3, 3});
  const Tensor wide_bias = Tensor::FromVector<double>({6}, {-1, -1, 0, 0, 1, 1});
  const Attributes attributes{{"num_groups", int64_t{3}}};
  ExpectIdentical(RunLiftedOp("GroupNormalization", 18, {Fed(x), Fed(scale), Fed(bias)}, attributes)[0],
                  RunOp("GroupNormalization", {Fed(x), Fed(wide_scale), Fed(wide_bias)}, attributes)[0]);
}

}  // namespace
}  // namespace onnxtrain
