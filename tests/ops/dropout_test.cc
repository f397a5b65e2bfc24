// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "graph/op_registry.h"
#include "runtime/math/philox.h"
#include "tests/support/gradient_check.h"
#include "tests/support/lifted_op.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

// Known answers of the authors' own test vectors for philox4x32-10.
TEST(Philox, KnownAnswers) {
  struct Known {
    math::PhiloxCounter counter;
    uint64_t key;
    math::PhiloxCounter expected;
  };
  const Known known[] = {
      {{{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{~0u, ~0u, ~0u, ~0u}}, ~uint64_t{0}, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       0x299f31d0a4093822,
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const Known& k : known) {
    const math::PhiloxCounter drawn = math::Philox4x32(k.counter, k.key);
    for (int word = 0; word < 4; ++word) EXPECT_EQ(drawn.words[word], k.expected.words[word]);
  }
}

Attributes Drawing(float ratio, int64_t draw_id = 3, int64_t seed = 12345678901) {
  return {{"ratio", ratio}, {"draw_id", draw_id}, {"seed", seed}};
}

// The draw by its definition.
Tensor Expected(const Tensor& x, double ratio, uint32_t draw_id, uint64_t seed, uint32_t attempt, uint32_t slice) {
  Tensor y(TensorType{DType::kDouble, x.shape()});
  for (int64_t i = 0; i < x.elements(); ++i) {
    const auto drawn = math::Philox4x32({{static_cast<uint32_t>(i / 4), draw_id, attempt, slice}}, seed);
    if (drawn.words[i % 4] >= ratio * 4294967296.0) y.values<double>()[i] = x.DoubleAt(i) / (1 - ratio);
  }
  return y;
}

TEST(Dropout, DrawsByElementWhateverTheThreads) {
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{63}, Shape{64}, Shape{3, 67}, Shape{257, 133}}) {
      SCOPED_TRACE(ToString(shape));
      const Tensor x = RandomTensor(dtype, shape, 5, 1, 2);
      const auto y = RunOp("onnxtrain.Dropout", {Fed(x), Fed(Tensor::Scalar<int64_t>(7))}, Drawing(0.25f), 2);
      const Tensor expected = Expected(x, 0.25, 3, 12345678901, 7, 0);
      ExpectNear(y[0].CastTo(DType::kDouble), expected, dtype == DType::kFloat ? 1e-6 : 1e-15);
      for (int64_t i = 0; i < x.elements(); ++i) EXPECT_EQ(y[1].DoubleAt(i), expected.DoubleAt(i) != 0);
    }
  }
}

TEST(Dropout, KeepsTheMeanAndTheRatio) {
  const Tensor x = RandomTensor(DType::kFloat, {1000000}, 5, 1, 1.0000001);
  for (float ratio : {0.1f, 0.5f, 0.9f}) {
    const auto y = RunOp("onnxtrain.Dropout", {Fed(x), Fed(Tensor::Scalar<int64_t>(0))}, Drawing(ratio), 2);
    double sum = 0, kept = 0;
    for (int64_t i = 0; i < x.elements(); ++i) {
      sum += y[0].DoubleAt(i);
      kept += y[1].DoubleAt(i);
    }
    EXPECT_NEAR(sum / 1e6, 1, 0.02);
    EXPECT_NEAR(kept / 1e6, 1 - ratio, 0.003);
  }
}

TEST(Dropout, RatioZeroIsExactlyTheInput) {
  const Tensor x = RandomTensor(DType::kFloat, {777}, 5);
  ExpectIdentical(RunOp("onnxtrain.Dropout", {Fed(x), Fed(Tensor::Scalar<int64_t>(4))}, Drawing(0))[0], x);
}

TEST(Dropout, EveryPartOfTheKeyCounts) {
  const Tensor x = RandomTensor(DType::kDouble, {200}, 5, 1, 2);
  const auto draw = [&](int64_t attempt, const Attributes& attributes, int64_t micro_batch) {
    Graph graph(OpRegistry::Default());
    const std::vector<OpInput> inputs = {Fed(x), Fed(Tensor::Scalar(attempt))};
    EXPECT_TRUE(AddOp(graph, "onnxtrain.Dropout", inputs, attributes).ok());
    OpRunnerOptions options;
    options.accumulation = 4;
    options.micro_batch = micro_batch;
    return RunGraph(graph, FeedsOf(inputs), options)->fetches.at("y0");
  };
  const Tensor base = draw(1, Drawing(0.5f), 0);
  EXPECT_TRUE(base.Identical(draw(1, Drawing(0.5f), 0)));
  EXPECT_FALSE(base.Identical(draw(2, Drawing(0.5f), 0)));
  EXPECT_FALSE(base.Identical(draw(1, Drawing(0.5f, 4), 0)));
  EXPECT_FALSE(base.Identical(draw(1, Drawing(0.5f, 3, 2), 0)));
  EXPECT_FALSE(base.Identical(draw(1, Drawing(0.5f), 1)));
  ExpectNear(draw(1, Drawing(0.5f), 2), Expected(x, 0.5, 3, 12345678901, 1, 2), 1e-15);
}

TEST(DropoutGradient, WithAndWithoutAMask) {
  const std::vector<OpInput> inputs = {Fed(RandomTensor(DType::kDouble, {5, 31}, 1)), Fed(Tensor::Scalar<int64_t>(3))};
  ExpectOpGradient("onnxtrain.Dropout", inputs, Drawing(0.25f), 1);
  ExpectOpGradient("onnxtrain.Dropout", inputs, Drawing(0.25f), 2);
}

TEST(Dropout, InferenceIsTheIdentity) {
  const Tensor x = RandomTensor(DType::kFloat, {3, 5}, 1);
  for (int opset : {7, 10, 12, 22}) {
    const auto y = opset < 12 ? RunLiftedOp("Dropout", opset, {Fed(x)}, {{"ratio", 0.75f}})
                              : RunLiftedOp("Dropout", opset, {Fed(x), Constant(Tensor::Scalar(0.75f))}, {});
    ExpectIdentical(y[0], x);
  }
  const auto with_mask = RunOp("Dropout", {Fed(x)}, {}, 2);
  for (int64_t i = 0; i < x.elements(); ++i) EXPECT_EQ(with_mask[1].IntAt(i), 1);
}

TEST(Dropout, TrainingFormOfTheStandardIsRefused) {
  Graph graph(OpRegistry::Default());
  Tensor training(TensorType{DType::kBool, {}});
  training.values<bool>()[0] = true;
  const std::vector<OpInput> inputs = {Fed(RandomTensor(DType::kFloat, {3}, 1)), Constant(Tensor::Scalar(0.5f)),
                                       Constant(training)};
  ASSERT_TRUE(AddOp(graph, "Dropout", inputs).ok());
  const auto result = RunGraph(graph, FeedsOf(inputs));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("set_mode"), std::string::npos);
}

}  // namespace
}  // namespace onnxtrain
