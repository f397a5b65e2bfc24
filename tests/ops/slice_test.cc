// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "graph/op_registry.h"
#include "tests/support/gradient_check.h"
#include "tests/support/lifted_op.h"
#include "tests/support/naive_reference.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

struct SliceCase {
  std::vector<int64_t> starts, ends, axes, steps;
  Shape shape;                  // of the result
  std::vector<int64_t> first;   // resolved start by axis
  std::vector<int64_t> stride;  // resolved step by axis
};

const Shape kData{5, 4, 6};

std::vector<SliceCase> SliceCases() {
  return {
      {{1}, {3}, {0}, {1}, {2, 4, 6}, {1, 0, 0}, {1, 1, 1}},
      {{0, 1}, {INT64_MAX, -1}, {1, 2}, {2, 3}, {5, 2, 2}, {0, 0, 1}, {1, 2, 3}},
      {{-1}, {INT64_MIN}, {0}, {-1}, {5, 4, 6}, {4, 0, 0}, {-1, 1, 1}},
      {{-2, 100}, {-100, 0}, {-1, 0}, {-2, -3}, {2, 4, 3}, {4, 0, 4}, {-3, 1, -2}},
      {{3}, {3}, {2}, {1}, {5, 4, 0}, {0, 0, 3}, {1, 1, 1}},
      {{-100}, {2}, {1}, {1}, {5, 2, 6}, {0, 0, 0}, {1, 1, 1}},
      {{2, 1, 0}, {4, 3, 6}, {0, 1, 2}, {1, 1, 5}, {2, 2, 2}, {2, 1, 0}, {1, 1, 5}},
  };
}

std::vector<OpInput> SliceInputs(const Tensor& x, const SliceCase& test) {
  return {Fed(x), Constant(Tensor::Ints(test.starts)), Constant(Tensor::Ints(test.ends)),
          Constant(Tensor::Ints(test.axes)), Constant(Tensor::Ints(test.steps))};
}

TEST(SliceTest, TakesRanges) {
  for (DType dtype : {DType::kFloat, DType::kDouble, DType::kInt64, DType::kUint8, DType::kFloat16}) {
    const Tensor x = RandomTensor(dtype, kData, 3);
    for (const SliceCase& test : SliceCases()) {
      SCOPED_TRACE(ToString(test.starts) + ToString(test.ends));
      const Tensor expected = FromIndices(dtype, test.shape, [&](const Index& i) {
        Index from(3);
        for (size_t axis = 0; axis < 3; ++axis) from[axis] = test.first[axis] + i[axis] * test.stride[axis];
        return At(x, from);
      });
      ExpectIdentical(RunOp("Slice", SliceInputs(x, test))[0], expected);
    }
  }
}

TEST(SliceTest, GradientPutsTheRangeBack) {
  for (const SliceCase& test : SliceCases()) {
    ExpectOpGradient("Slice", SliceInputs(RandomTensor(DType::kDouble, kData, 4), test));
  }
}

TEST(SliceTest, DefaultsAndOldForm) {
  const Tensor x = RandomTensor(DType::kFloat, {4, 5}, 5);
  const Tensor expected = FromIndices(DType::kFloat, {2, 3}, [&](const Index& i) {
    return At(x, {i[0] + 1, i[1] + 2});
  });
  ExpectIdentical(RunOp("Slice", {Fed(x), Constant(Tensor::Ints({1, 2})), Constant(Tensor::Ints({3, 5}))})[0],
                  expected);
  const Attributes old{{"starts", std::vector<int64_t>{2, 1}},
                       {"ends", std::vector<int64_t>{5, 3}},
                       {"axes", std::vector<int64_t>{1, 0}}};
  ExpectIdentical(RunLiftedOp("Slice", 9, {Fed(x)}, old)[0], expected);
}

TEST(SliceTest, SplitAndConcatAreInverse) {
  for (DType dtype : {DType::kFloat, DType::kInt64, DType::kBool}) {
    for (int64_t axis : {0, 1, -1}) {
      const Tensor x = RandomTensor(dtype, {6, 6, 6}, 6);
      const std::vector<int64_t> sizes{1, 0, 3, 2};
      const std::vector<Tensor> parts =
          RunOp("Split", {Fed(x), Constant(Tensor::Ints(sizes))}, {{"axis", axis}}, sizes.size());
      std::vector<OpInput> inputs;
      for (size_t i = 0; i < parts.size(); ++i) {
        EXPECT_EQ(parts[i].shape()[static_cast<size_t>(axis < 0 ? axis + 3 : axis)], sizes[i]);
        inputs.push_back(Fed(parts[i]));
      }
      ExpectIdentical(RunOp("Concat", inputs, {{"axis", axis}})[0], x);
    }
  }
}

TEST(SliceTest, SplitTakesEqualParts) {
  const Tensor x = Tensor::Ints({0, 1, 2, 3, 4, 5, 6});
  const std::vector<Tensor> parts = RunOp("Split", {Fed(x)}, {{"num_outputs", int64_t{3}}}, 3);
  ExpectIdentical(parts[0], Tensor::Ints({0, 1, 2}));
  ExpectIdentical(parts[2], Tensor::Ints({6}));
  const std::vector<Tensor> old = RunLiftedOp("Split", 11, {Fed(Tensor::Ints({1, 2, 3, 4}))}, {}, 2);
  ExpectIdentical(old[1], Tensor::Ints({3, 4}));
  const std::vector<Tensor> sized =
      RunLiftedOp("Split", 11, {Fed(Tensor::Ints({1, 2, 3, 4}))}, {{"split", std::vector<int64_t>{1, 3}}}, 2);
  ExpectIdentical(sized[1], Tensor::Ints({2, 3, 4}));
}

TEST(SliceTest, SplitGradientFillsUnusedPartsWithZero) {
  const Tensor x = RandomTensor(DType::kDouble, {2, 5}, 7);
  const std::vector<OpInput> inputs{Fed(x), Constant(Tensor::Ints({1, 2, 2}))};
  ExpectOpGradient("Split", inputs, {{"axis", int64_t{1}}}, 3);
  Graph graph(OpRegistry::Default());
  ASSERT_TRUE(AddOp(graph, "Split", inputs, {{"axis", int64_t{1}}}, 3).ok());
  const Tensor weight = Tensor::FromVector<double>({2, 2}, {1, 2, 3, 4});
  StatusOr<NamedTensors> gradients = GradientsOf(graph, FeedsOf(inputs), {{"y1", weight}}, {"x0"});
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  ExpectIdentical(gradients->at("x0"), Tensor::FromVector<double>({2, 5}, {0, 1, 2, 0, 0, 0, 3, 4, 0, 0}));
}

TEST(SliceTest, ConcatGradientForEverySubset) {
  for (int64_t axis : {0, 1, -1}) {
    std::vector<OpInput> inputs;
    for (int64_t size : {2, 1, 3}) {
      Shape shape{2, 3, 2};
      shape[static_cast<size_t>(axis < 0 ? axis + 3 : axis)] = size;
      inputs.push_back(Fed(RandomTensor(DType::kDouble, shape, 8 + static_cast<uint64_t>(size))));
    }
    ExpectOpGradient("Concat", inputs, {{"axis", axis}});
  }
  ExpectOpGradient("Concat", {Fed(RandomTensor(DType::kDouble, {3}, 1))}, {{"axis", int64_t{0}}});
}

// `before` and `after` by axis, of a matrix.
Tensor PaddedMatrix(const Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
                    const std::string& mode, double value) {
  Shape shape;
  for (size_t axis = 0; axis < 2; ++axis) shape.push_back(x.shape()[axis] + before[axis] + after[axis]);
  return FromIndices(x.dtype(), shape, [&](const Index& index) {
    Index from(2);
    for (size_t axis = 0; axis < 2; ++axis) {
      const int64_t size = x.shape()[axis];
      int64_t i = index[axis] - before[axis];
      if (mode == "constant" && (i < 0 || i >= size)) return value;
      if (mode == "edge") i = std::clamp<int64_t>(i, 0, size - 1);
      if (mode == "wrap") i = (i % size + size) % size;
      while (mode == "reflect" && (i < 0 || i >= size)) i = i < 0 ? -i : 2 * (size - 1) - i;
      from[axis] = i;
    }
    return At(x, from);
  });
}

TEST(SliceTest, PadInEveryMode) {
  const Tensor x = RandomTensor(DType::kFloat, {4, 5}, 9);
  for (const char* mode : {"constant", "edge", "wrap", "reflect"}) {
    for (const std::vector<int64_t>& pads : {std::vector<int64_t>{1, 2, 3, 0}, {0, 0, 0, 0}, {3, 4, 3, 4}}) {
      SCOPED_TRACE(std::string(mode) + ToString(pads));
      const std::vector<OpInput> inputs{Fed(x), Constant(Tensor::Ints(pads)), Constant(Tensor::Scalar(1.5f))};
      const Tensor expected = PaddedMatrix(x, {pads[0], pads[1]}, {pads[2], pads[3]}, mode, 1.5);
      ExpectIdentical(RunOp("Pad", inputs, {{"mode", std::string(mode)}})[0], expected);
      ExpectOpGradient("Pad", {Fed(RandomTensor(DType::kDouble, {4, 5}, 10)), Constant(Tensor::Ints(pads))},
                       {{"mode", std::string(mode)}});
    }
  }
}

TEST(SliceTest, NegativePadsCrop) {
  const Tensor x = RandomTensor(DType::kFloat, {4, 5}, 9);
  const std::vector<int64_t> pads{-1, 2, 1, -3};
  ExpectIdentical(RunOp("Pad", {Fed(x), Constant(Tensor::Ints(pads))})[0],
                  PaddedMatrix(x, {-1, 2}, {1, -3}, "constant", 0));
  ExpectOpGradient("Pad", {Fed(RandomTensor(DType::kDouble, {4, 5}, 10)), Constant(Tensor::Ints(pads))});
}

TEST(SliceTest, PadOfNamedAxesAndOldForm) {
  const Tensor x = RandomTensor(DType::kDouble, {4, 5}, 9);
  const std::vector<OpInput> inputs{Fed(x), Constant(Tensor::Ints({2, 1})), Omitted(), Constant(Tensor::Ints({-1}))};
  ExpectIdentical(RunOp("Pad", inputs)[0], PaddedMatrix(x, {0, 2}, {0, 1}, "constant", 0));
  ExpectOpGradient("Pad", inputs);
  ExpectOpGradient("Pad", inputs, {{"mode", std::string("reflect")}});
  ExpectIdentical(RunLiftedOp("Pad", 10, {Fed(x)}, {{"pads", std::vector<int64_t>{1, 0, 0, 2}}, {"value", 0.5f}})[0],
                  PaddedMatrix(x, {1, 0}, {0, 2}, "constant", 0.5));
}

}  // namespace
}  // namespace onnxtrain
