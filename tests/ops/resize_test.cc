// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/op_registry.h"
#include "tests/support/gradient_check.h"
#include "tests/support/lifted_op.h"
#include "tests/support/naive_reference.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

Attributes Mode(const char* mode, const char* coordinates, const char* nearest = "round_prefer_floor") {
  return {{"mode", std::string(mode)},
          {"coordinate_transformation_mode", std::string(coordinates)},
          {"nearest_mode", std::string(nearest)}};
}

std::vector<OpInput> ToSizes(const Tensor& x, const std::vector<int64_t>& sizes) {
  return {Fed(x), Omitted(), Omitted(), Constant(Tensor::Ints(sizes))};
}

std::vector<OpInput> ByScales(const Tensor& x, const std::vector<float>& scales) {
  return {Fed(x), Omitted(), Constant(Tensor::FromVector({static_cast<int64_t>(scales.size())}, scales))};
}

TEST(ResizeTest, NearestRepeatsPixels) {
  const Tensor x = RandomTensor(DType::kFloat, {2, 3, 4, 5}, 1);
  const Tensor expected = FromIndices(DType::kFloat, {2, 3, 8, 15}, [&](const Index& i) {
    return At(x, {i[0], i[1], i[2] / 2, i[3] / 3});
  });
  ExpectIdentical(RunOp("Resize", ToSizes(x, {2, 3, 8, 15}), Mode("nearest", "asymmetric", "floor"))[0], expected);
  ExpectIdentical(RunOp("Resize", ByScales(x, {1, 1, 2, 3}), Mode("nearest", "half_pixel"))[0], expected);
  ExpectIdentical(RunLiftedOp("Upsample", 9, {Fed(x), Constant(Tensor::FromVector<float>({4}, {1, 1, 2, 3}))})[0],
                  expected);
  ExpectIdentical(RunLiftedOp("Upsample", 7, {Fed(x)}, {{"scales", std::vector<float>{1, 1, 2, 3}}})[0], expected);
  ExpectIdentical(RunLiftedOp("Resize", 10, {Fed(x), Constant(Tensor::FromVector<float>({4}, {1, 1, 2, 3}))})[0],
                  expected);
}

// Values of PyTorch's interpolate on [1, 2, 4].
TEST(ResizeTest, LinearInterpolates) {
  const Tensor x = Tensor::FromVector<float>({1, 1, 3}, {1, 2, 4});
  ExpectNear(RunOp("Resize", ByScales(x, {1, 1, 2}), Mode("linear", "half_pixel"))[0],
             Tensor::FromVector<float>({1, 1, 6}, {1, 1.25f, 1.75f, 2.5f, 3.5f, 4}), 1e-6);
  ExpectNear(RunOp("Resize", ToSizes(x, {1, 1, 5}), Mode("linear", "align_corners"))[0],
             Tensor::FromVector<float>({1, 1, 5}, {1, 1.5f, 2, 3, 4}), 1e-6);
  ExpectNear(RunOp("Resize", ToSizes(x, {1, 1, 1}), Mode("linear", "pytorch_half_pixel"))[0],
             Tensor::FromVector<float>({1, 1, 1}, {1}), 1e-6);
}

TEST(ResizeTest, KeepsWhatDoesNotChange) {
  const Tensor x = RandomTensor(DType::kFloat, {2, 3, 4}, 2);
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    ExpectIdentical(RunOp("Resize", ToSizes(x, {2, 3, 4}), Mode(mode, "half_pixel"))[0], x);
  }
}

TEST(ResizeTest, LinearIsSeparable) {
  const Tensor x = RandomTensor(DType::kDouble, {1, 2, 5, 7}, 3);
  const Attributes attributes = Mode("linear", "half_pixel");
  const Tensor both = RunOp("Resize", ToSizes(x, {1, 2, 8, 3}), attributes)[0];
  const Tensor first = RunOp("Resize", ToSizes(x, {1, 2, 8, 7}), attributes)[0];
  ExpectNear(RunOp("Resize", ToSizes(first, {1, 2, 8, 3}), attributes)[0], both, 1e-15);
}

TEST(ResizeTest, GradientIsTheTransposedInterpolation) {
  const Tensor x = RandomTensor(DType::kDouble, {1, 2, 3, 4}, 4);
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}) {
      for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 2, 5, 3}, {1, 2, 2, 8}, {1, 2, 1, 4}}) {
        SCOPED_TRACE(std::string(mode) + " " + coordinates + " " + ToString(sizes));
        ExpectOpGradient("Resize", ToSizes(x, sizes), Mode(mode, coordinates));
      }
    }
  }
  Attributes antialias = Mode("linear", "half_pixel");
  antialias.Set("antialias", int64_t{1});
  ExpectOpGradient("Resize", ToSizes(x, {1, 2, 2, 2}), antialias);
  ExpectOpGradient("Resize", ByScales(x, {1, 1, 1.7f, 0.6f}), Mode("linear", "half_pixel"));
}

TEST(ResizeTest, NothingHasAGradientOfZeros) {
  const Attributes attributes{{"shape", std::vector<int64_t>{2, 3}}, {"mode", std::string("linear")}};
  ExpectIdentical(RunOp("onnxtrain.ResizeGrad", {Fed(RandomTensor(DType::kFloat, {2, 0}, 1))}, attributes)[0],
                  Tensor::FromVector<float>({2, 3}, {0, 0, 0, 0, 0, 0}));
}

TEST(ResizeTest, RefusesWhatItDoesNotKnow) {
  Graph graph(OpRegistry::Default());
  const std::vector<OpInput> inputs{Fed(RandomTensor(DType::kFloat, {1, 2}, 1)),
                                    Constant(Tensor::FromVector<float>({4}, {0, 0, 1, 1})), Omitted(),
                                    Constant(Tensor::Ints({1, 4}))};
  ASSERT_TRUE(AddOp(graph, "Resize", inputs, Mode("linear", "tf_crop_and_resize")).ok());
  StatusOr<OpRunnerResult> result = RunGraph(graph, FeedsOf(inputs));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("tf_crop_and_resize"), std::string::npos);
}

}  // namespace
}  // namespace onnxtrain
