// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "graph/op_registry.h"
#include "runtime/status_word.h"
#include "tests/support/gradient_check.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

struct LossCase {
  Shape scores;
  std::string reduction = "mean";
  bool weighted = false;
  int64_t ignore = -100;
  double smoothing = 0;
};

Shape LabelShape(const Shape& scores) {
  Shape labels = {scores[0]};
  labels.insert(labels.end(), scores.begin() + 2, scores.end());
  return labels;
}

// Labels 0..C-1 with every third one ignored when `ignore` is used.
Tensor Labels(const LossCase& c, DType dtype, uint64_t seed) {
  Tensor labels = RandomTensor(DType::kInt64, LabelShape(c.scores), seed, 0, static_cast<double>(c.scores[1] - 1));
  for (int64_t i = 0; i < labels.elements(); i += 3) labels.values<int64_t>()[i] = c.ignore;
  return labels.CastTo(dtype);
}

// The definition: log probabilities, picked and weighted (PyTorch's cross_entropy).
Tensor NaiveLoss(const LossCase& c, const Tensor& scores, const Tensor& labels, const Tensor* weights, bool softmax) {
  const int64_t classes = c.scores[1];
  const int64_t inner = ElementsOf(std::span(c.scores).subspan(2));
  Tensor losses(TensorType{DType::kDouble, LabelShape(c.scores)});
  double loss_sum = 0, weight_sum = 0;
  for (int64_t p = 0; p < labels.elements(); ++p) {
    const auto score = [&](int64_t k) { return scores.DoubleAt((p / inner * classes + k) * inner + p % inner); };
    const auto weight = [&](int64_t k) { return weights == nullptr ? 1.0 : weights->DoubleAt(k); };
    const int64_t label = labels.IntAt(p);
    if (label == c.ignore) continue;
    double log_sum = 0;
    for (int64_t k = 0; k < classes && softmax; ++k) log_sum += std::exp(score(k));
    if (softmax) log_sum = std::log(log_sum);
    double smooth = 0;
    for (int64_t k = 0; k < classes; ++k) smooth += weight(k) * (log_sum - score(k));
    const double loss = (1 - c.smoothing) * weight(label) * (log_sum - score(label)) +
                        c.smoothing / static_cast<double>(classes) * smooth;
    losses.values<double>()[p] = loss;
    loss_sum += loss;
    weight_sum += weight(label);
  }
  if (c.reduction == "none") return losses;
  return Tensor::Scalar(c.reduction == "sum" ? loss_sum : loss_sum / weight_sum);
}

Attributes AttributesOf(const LossCase& c) {
  Attributes attributes{{"reduction", c.reduction}, {"ignore_index", c.ignore}};
  if (c.smoothing != 0) attributes.Set("label_smoothing", static_cast<float>(c.smoothing));
  return attributes;
}

std::vector<OpInput> Inputs(const LossCase& c, DType dtype, DType label_type, uint64_t seed) {
  std::vector<OpInput> inputs = {Fed(RandomTensor(dtype, c.scores, seed)), Fed(Labels(c, label_type, seed + 1))};
  if (c.weighted) inputs.push_back(Fed(RandomTensor(dtype, {c.scores[1]}, seed + 2, 0.1, 2)));
  return inputs;
}

const LossCase kCases[] = {
    {{5, 3}},
    {{1, 1}, "sum", false, -1},
    {{37, 10}, "mean", true},
    {{7, 129}, "sum", true, 0},
    {{4, 3}, "none", true, 2},
    {{2, 5, 3}, "mean", true, -1},
    {{3, 4, 5, 7}, "none"},
    {{2, 19, 3, 11}, "sum", true},
    {{1, 3, 2, 1, 19}, "mean"},
    {{0, 3}, "sum"},
};
const LossCase kSmoothed[] = {{{5, 3}, "mean", false, -100, 0.125},
                              {{4, 7, 3}, "mean", true, 1, 0.25},
                              {{3, 6}, "none", true, -1, 0.5},
                              {{3, 6}, "sum", false, -1, 1.0}};

void ExpectLoss(const char* op, const LossCase& c, bool softmax, DType dtype, DType label_type) {
  SCOPED_TRACE(std::string(op) + ToString(c.scores) + c.reduction);
  const auto inputs = Inputs(c, dtype, label_type, 11);
  const Tensor* weights = c.weighted ? &*inputs[2].tensor : nullptr;
  const Tensor expected = NaiveLoss(c, *inputs[0].tensor, *inputs[1].tensor, weights, softmax);
  const auto result = RunOp(op, inputs, AttributesOf(c));
  ExpectNear(result[0].CastTo(DType::kDouble), expected, dtype == DType::kFloat ? 1e-5 : 1e-13);
}

TEST(Loss, MatchesItsDefinition) {
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    for (DType label_type : {DType::kInt64, DType::kInt32}) {
      for (const LossCase& c : kCases) {
        ExpectLoss("SoftmaxCrossEntropyLoss", c, true, dtype, label_type);
        ExpectLoss("NegativeLogLikelihoodLoss", c, false, dtype, label_type);
        ExpectLoss("onnxtrain.SoftmaxCrossEntropyLoss", c, true, dtype, label_type);
      }
    }
    for (const LossCase& c : kSmoothed) {
      ExpectLoss("onnxtrain.SoftmaxCrossEntropyLoss", c, true, dtype, DType::kInt64);
    }
  }
}

TEST(Loss, GivesLogProbabilities) {
  for (const LossCase& c : {LossCase{{5, 3}}, LossCase{{2, 5, 17}}}) {
    const auto inputs = Inputs(c, DType::kDouble, DType::kInt64, 5);
    const auto result = RunOp("SoftmaxCrossEntropyLoss", inputs, AttributesOf(c), 2);
    ExpectNear(result[0], NaiveLoss(c, *inputs[0].tensor, *inputs[1].tensor, nullptr, true), 1e-14);
    ExpectNear(result[1], RunOp("LogSoftmax", {inputs[0]}, {{"axis", int64_t{1}}})[0], 1e-14);
  }
}

TEST(Loss, LargeScoresStayExact) {
  const Tensor scores = Tensor::FromVector<float>({1, 3}, {1e6f, 1e6f + 1, -1e30f});
  const auto loss = RunOp("SoftmaxCrossEntropyLoss", {Fed(scores), Fed(Tensor::Ints({0}))});
  ExpectNear(loss[0].CastTo(DType::kDouble), Tensor::Scalar(std::log1p(std::exp(1.0))), 1e-6);
}

TEST(Loss, NothingCountedIsNoNumberAndNoGradient) {
  const Tensor scores = RandomTensor(DType::kFloat, {2, 3}, 1);
  const Tensor labels = Tensor::Ints({-100, -100});
  const Attributes ignoring{{"ignore_index", int64_t{-100}}};
  EXPECT_TRUE(std::isnan(RunOp("SoftmaxCrossEntropyLoss", {Fed(scores), Fed(labels)}, ignoring)[0].DoubleAt(0)));
  const auto gradient =
      RunOp("onnxtrain.SoftmaxCrossEntropyLossGrad", {Fed(Tensor::Scalar(0.0f)), Fed(scores), Fed(labels)}, ignoring);
  ExpectIdentical(gradient[0], Tensor(TensorType{DType::kFloat, {2, 3}}));
}

TEST(Loss, LabelOutOfRangeIsReportedAndNotClamped) {
  for (int64_t wrong : {int64_t{3}, int64_t{-1}, int64_t{1} << 40}) {
    for (const char* op : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}) {
      Graph graph(OpRegistry::Default());
      const std::vector<OpInput> inputs = {Fed(RandomTensor(DType::kFloat, {2, 3}, 1)), Fed(Tensor::Ints({0, wrong}))};
      ASSERT_TRUE(AddOp(graph, op, inputs, {{"ignore_index", int64_t{-100}}}).ok());
      const auto result = RunGraph(graph, FeedsOf(inputs));
      ASSERT_TRUE(result.ok());
      EXPECT_EQ(FaultOf(result->status_word), DeviceFault::kLabelOutOfRange);
      EXPECT_EQ(NodeIndexOf(result->status_word), 0);
    }
  }
}

TEST(LossGradient, MatchesFiniteDifferences) {
  const auto check = [](const char* op, const LossCase& c) {
    SCOPED_TRACE(std::string(op) + ToString(c.scores) + c.reduction);
    GradientCheckOptions options;
    options.without_gradient = {"x2"};
    ExpectOpGradient(op, Inputs(c, DType::kDouble, DType::kInt64, 31), AttributesOf(c), 1, options);
  };
  for (const LossCase& c : kCases) {
    if (c.scores[0] == 1 && c.scores[1] == 1) continue;  // its only label is ignored
    check("SoftmaxCrossEntropyLoss", c);
    check("NegativeLogLikelihoodLoss", c);
  }
  for (const LossCase& c : kSmoothed) check("onnxtrain.SoftmaxCrossEntropyLoss", c);
}

TEST(LossGradient, FlowsThroughLogProbabilitiesToo) {
  const LossCase c{{3, 4, 2}, "mean", false, -1};
  ExpectOpGradient("SoftmaxCrossEntropyLoss", Inputs(c, DType::kDouble, DType::kInt64, 3), AttributesOf(c), 2);
}

TEST(LossGradient, SinglePrecisionAgreesWithDouble) {
  for (const char* op : {"onnxtrain.SoftmaxCrossEntropyLossGrad", "onnxtrain.NegativeLogLikelihoodLossGrad"}) {
    for (const LossCase& c : {LossCase{{33, 257}, "mean", true}, LossCase{{3, 21, 19}, "sum"}}) {
      auto single = Inputs(c, DType::kFloat, DType::kInt64, 8);
      single.insert(single.begin(), Fed(Tensor::Scalar(3.0f)));
      auto wide = single;
      for (OpInput& input : wide) {
        if (IsFloating(input.tensor->dtype())) input = Fed(input.tensor->CastTo(DType::kDouble));
      }
      ExpectNear(RunOp(op, single, AttributesOf(c))[0].CastTo(DType::kDouble), RunOp(op, wide, AttributesOf(c))[0],
                 1e-6);
    }
  }
}

TEST(CountLabels, CountsAndWeighs) {
  const Tensor labels = Tensor::Ints({0, 2, -100, 1, 2});
  const Attributes ignoring{{"ignore_index", int64_t{-100}}};
  ExpectIdentical(RunOp("onnxtrain.CountLabels", {Fed(labels)}, ignoring)[0], Tensor::Scalar(4.0f));
  const Tensor weights = Tensor::FromVector<double>({3}, {0.5, 1, 4});
  const Attributes to_double{{"ignore_index", int64_t{-100}}, {"to", static_cast<int64_t>(DType::kDouble)}};
  ExpectIdentical(RunOp("onnxtrain.CountLabels", {Fed(labels.CastTo(DType::kInt32)), Fed(weights)}, to_double)[0],
                  Tensor::Scalar(9.5));
}

TEST(BinaryCrossEntropy, IsStableAndReduces) {
  const Tensor x = Tensor::FromVector<double>({4}, {-1000, 1000, 0, 2});
  const Tensor target = Tensor::FromVector<double>({4}, {0, 0, 1, 0.25});
  const Tensor expected = Tensor::FromVector<double>({4}, {0, 1000, std::log(2.0), 1.5 + std::log1p(std::exp(-2.0))});
  const auto run = [&](const char* reduction, DType dtype) {
    return RunOp("onnxtrain.BinaryCrossEntropyWithLogits", {Fed(x.CastTo(dtype)), Fed(target.CastTo(dtype))},
                 {{"reduction", std::string(reduction)}})[0]
        .CastTo(DType::kDouble);
  };
  double sum = 0;
  for (int64_t i = 0; i < 4; ++i) sum += expected.DoubleAt(i);
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    const double tolerance = dtype == DType::kFloat ? 1e-6 : 1e-15;
    ExpectNear(run("none", dtype), expected, tolerance);
    ExpectNear(run("sum", dtype), Tensor::Scalar(sum), tolerance);
    ExpectNear(run("mean", dtype), Tensor::Scalar(sum / 4), tolerance);
  }
}

TEST(BinaryCrossEntropy, GradientMatchesFiniteDifferences) {
  for (const char* reduction : {"none", "sum", "mean"}) {
    SCOPED_TRACE(reduction);
    ExpectOpGradient(
        "onnxtrain.BinaryCrossEntropyWithLogits",
        {Fed(RandomTensor(DType::kDouble, {3, 5}, 1, -4, 4)), Fed(RandomTensor(DType::kDouble, {3, 5}, 2, 0, 1))},
        {{"reduction", std::string(reduction)}});
  }
}

}  // namespace
}  // namespace onnxtrain
