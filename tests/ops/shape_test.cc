// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
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

const DType kMoved[] = {DType::kFloat, DType::kDouble, DType::kInt64, DType::kBool, DType::kBfloat16};

Attributes Axis(int64_t axis) { return {{"axis", axis}}; }

TEST(ShapeTest, ViewsKeepTheirBytes) {
  for (DType dtype : kMoved) {
    const Tensor x = RandomTensor(dtype, {2, 1, 3, 5}, 1);
    ExpectIdentical(RunOp("Identity", {Fed(x)})[0], x);
    ExpectIdentical(RunOp("Reshape", {Fed(x), Constant(Tensor::Ints({0, -1, 5}))})[0], x.Reshaped({2, 3, 5}));
    ExpectIdentical(RunOp("Flatten", {Fed(x)}, Axis(2))[0], x.Reshaped({2, 15}));
    ExpectIdentical(RunOp("Squeeze", {Fed(x), Constant(Tensor::Ints({1}))})[0], x.Reshaped({2, 3, 5}));
    ExpectIdentical(RunOp("Unsqueeze", {Fed(x), Constant(Tensor::Ints({0, -1}))})[0], x.Reshaped({1, 2, 1, 3, 5, 1}));
  }
  const Tensor empty = RandomTensor(DType::kFloat, {0, 3}, 1);
  ExpectIdentical(RunOp("Reshape", {Fed(empty), Constant(Tensor::Ints({3, 0}))}, {{"allowzero", int64_t{1}}})[0],
                  empty.Reshaped({3, 0}));
}

TEST(ShapeTest, ViewGradients) {
  const Tensor x = RandomTensor(DType::kDouble, {2, 1, 3}, 1);
  ExpectOpGradient("Identity", {Fed(x)});
  ExpectOpGradient("Reshape", {Fed(x), Constant(Tensor::Ints({3, 2}))});
  ExpectOpGradient("Flatten", {Fed(x)});
  ExpectOpGradient("Squeeze", {Fed(x)});
  ExpectOpGradient("Unsqueeze", {Fed(x), Constant(Tensor::Ints({1}))});
}

TEST(ShapeTest, LiftsAxesAttributesBeforeOpset13) {
  const Tensor x = RandomTensor(DType::kFloat, {2, 1, 3}, 1);
  const Attributes axes{{"axes", std::vector<int64_t>{1}}};
  ExpectIdentical(RunLiftedOp("Squeeze", 11, {Fed(x)}, axes)[0], x.Reshaped({2, 3}));
  ExpectIdentical(RunLiftedOp("Unsqueeze", 11, {Fed(x)}, axes)[0], x.Reshaped({2, 1, 1, 3}));
}

void ExpectTranspose(DType dtype, const Shape& shape, const std::vector<int64_t>& permutation) {
  SCOPED_TRACE(ToString(TensorType{dtype, shape}) + " by " + ToString(permutation));
  const Tensor x = RandomTensor(dtype, shape, 21);
  Shape permuted;
  for (int64_t axis : permutation) permuted.push_back(shape[static_cast<size_t>(axis)]);
  const Tensor expected = FromIndices(dtype, permuted, [&](const Index& index) {
    Index from(index.size());
    for (size_t i = 0; i < index.size(); ++i) from[static_cast<size_t>(permutation[i])] = index[i];
    return At(x, from);
  });
  ExpectIdentical(RunOp("Transpose", {Fed(x)}, {{"perm", permutation}})[0], expected);
}

TEST(ShapeTest, TransposeOfEveryPermutation) {
  for (const Shape& shape : {Shape{3, 5, 2, 7}, Shape{1, 9, 1, 17}, Shape{2, 0, 3, 1}, Shape{8, 2, 16, 4}}) {
    std::vector<int64_t> permutation{0, 1, 2, 3};
    do {
      ExpectTranspose(DType::kFloat, shape, permutation);
    } while (std::next_permutation(permutation.begin(), permutation.end()));
  }
}

TEST(ShapeTest, TransposeOfMatrices) {
  for (DType dtype : kMoved) {
    for (const Shape& shape : {Shape{1, 1}, Shape{1, 7}, Shape{8, 8}, Shape{9, 17}, Shape{65, 130}, Shape{257, 3}}) {
      ExpectTranspose(dtype, shape, {1, 0});
    }
    ExpectTranspose(dtype, {3, 70, 33}, {0, 2, 1});
  }
  ExpectIdentical(RunOp("Transpose", {Fed(Tensor::Ints({1, 2, 3}).Reshaped({1, 3}))})[0],
                  Tensor::Ints({1, 2, 3}).Reshaped({3, 1}));
}

TEST(ShapeTest, TransposeGradient) {
  const Tensor x = RandomTensor(DType::kDouble, {2, 3, 4}, 1);
  ExpectOpGradient("Transpose", {Fed(x)});
  ExpectOpGradient("Transpose", {Fed(x)}, {{"perm", std::vector<int64_t>{1, 2, 0}}});
}

TEST(ShapeTest, ExpandBroadcasts) {
  struct Case {
    Shape from, to;
  };
  for (const Case& test : {Case{{}, {3}}, Case{{3, 1}, {2, 3, 4}}, Case{{1}, {5}}, Case{{4, 1, 3}, {4, 7, 3}},
                           Case{{3}, {0, 3}}, Case{{2, 3}, {1, 3}}}) {
    for (DType dtype : kMoved) {
      const Tensor x = RandomTensor(dtype, test.from, 2);
      const Tensor expected =
          FromIndices(dtype, BroadcastShape(test.from, test.to), [&](const Index& index) { return At(x, index); });
      ExpectIdentical(RunOp("Expand", {Fed(x), Constant(Tensor::Ints(test.to))})[0], expected);
    }
    ExpectOpGradient("Expand", {Fed(RandomTensor(DType::kDouble, test.from, 3)), Constant(Tensor::Ints(test.to))});
  }
}

TEST(ShapeTest, TileRepeats) {
  const std::vector<int64_t> repeats{2, 1, 3};
  for (DType dtype : kMoved) {
    const Tensor x = RandomTensor(dtype, {3, 2, 2}, 4);
    const Tensor expected = FromIndices(dtype, {6, 2, 6}, [&](const Index& i) {
      return At(x, {i[0] % 3, i[1] % 2, i[2] % 2});
    });
    ExpectIdentical(RunOp("Tile", {Fed(x), Constant(Tensor::Ints(repeats))})[0], expected);
  }
  ExpectOpGradient("Tile", {Fed(RandomTensor(DType::kDouble, {3, 2, 2}, 4)), Constant(Tensor::Ints(repeats))});
  EXPECT_EQ(RunOp("Tile", {Fed(RandomTensor(DType::kFloat, {3}, 1)), Constant(Tensor::Ints({0}))})[0].elements(), 0);
}

TEST(ShapeTest, TriluKeepsOneSide) {
  for (int64_t k : {-4, -1, 0, 2, 9}) {
    for (int64_t upper : {0, 1}) {
      for (const Shape& shape : {Shape{3, 5}, Shape{2, 5, 3}, Shape{1, 1}, Shape{0, 2}}) {
        const Tensor x = RandomTensor(DType::kFloat, shape, 5);
        const Tensor expected = FromIndices(DType::kFloat, shape, [&](const Index& index) {
          const int64_t distance = index[index.size() - 1] - index[index.size() - 2] - k;
          return (upper != 0 ? distance >= 0 : distance <= 0) ? At(x, index) : 0;
        });
        const Attributes attributes{{"upper", upper}};
        ExpectIdentical(RunOp("Trilu", {Fed(x), Constant(Tensor::Scalar(k))}, attributes)[0], expected);
      }
      ExpectOpGradient("Trilu", {Fed(RandomTensor(DType::kDouble, {3, 4}, 6)), Constant(Tensor::Scalar(k))},
                       {{"upper", upper}});
    }
  }
}

TEST(ShapeTest, NumbersFromShapes) {
  const Tensor x = RandomTensor(DType::kFloat, {2, 3, 5}, 1);
  ExpectIdentical(RunOp("Shape", {Fed(x)})[0], Tensor::Ints({2, 3, 5}));
  ExpectIdentical(RunOp("Shape", {Fed(x)}, {{"start", int64_t{-2}}})[0], Tensor::Ints({3, 5}));
  ExpectIdentical(RunOp("Shape", {Fed(x)}, {{"end", int64_t{-1}}})[0], Tensor::Ints({2, 3}));
  ExpectIdentical(RunOp("Size", {Fed(x)})[0], Tensor::Scalar(int64_t{30}));
  ExpectIdentical(RunOp("ConstantOfShape", {Constant(Tensor::Ints({2, 2}))})[0],
                  Tensor::FromVector<float>({2, 2}, {0, 0, 0, 0}));
  ExpectIdentical(
      RunOp("ConstantOfShape", {Constant(Tensor::Ints({3}))}, {{"value", Tensor::FromVector<int64_t>({1}, {7})}})[0],
      Tensor::Ints({7, 7, 7}));
  ExpectIdentical(RunOp("Range", {Constant(Tensor::Scalar(int64_t{10})), Constant(Tensor::Scalar(int64_t{3})),
                                  Constant(Tensor::Scalar(int64_t{-3}))})[0],
                  Tensor::Ints({10, 7, 4}));
  ExpectNear(RunOp("Range",
                   {Constant(Tensor::Scalar(0.5f)), Constant(Tensor::Scalar(2.0f)), Constant(Tensor::Scalar(0.5f))})[0],
             Tensor::FromVector<float>({3}, {0.5f, 1, 1.5f}), 0);
  ExpectIdentical(RunOp("EyeLike", {Fed(Tensor(TensorType{DType::kFloat, {2, 3}}))}, {{"k", int64_t{1}}})[0],
                  Tensor::FromVector<float>({2, 3}, {0, 1, 0, 0, 0, 1}));
}

TEST(ShapeTest, LiftsConstantsAndSpaceToDepth) {
  ExpectIdentical(RunLiftedOp("Constant", 13, {}, {{"value_ints", std::vector<int64_t>{4, 5}}})[0],
                  Tensor::Ints({4, 5}));
  ExpectIdentical(RunLiftedOp("Constant", 13, {}, {{"value_float", 2.5f}})[0], Tensor::Scalar(2.5f));
  const int64_t b = 2, depth = 3;
  const Attributes block{{"blocksize", b}};
  const Tensor image = RandomTensor(DType::kFloat, {2, depth, 4, 6}, 3);
  const Tensor deep = RunLiftedOp("SpaceToDepth", 13, {Fed(image)}, block)[0];
  ExpectIdentical(deep, FromIndices(DType::kFloat, {2, depth * 4, 2, 3}, [&](const Index& i) {
                    const int64_t part = i[1] / depth;
                    return At(image, {i[0], i[1] % depth, i[2] * b + part / b, i[3] * b + part % b});
                  }));
  ExpectIdentical(RunLiftedOp("DepthToSpace", 13, {Fed(deep)}, block)[0], image);
  const Tensor crd = RunLiftedOp("DepthToSpace", 13, {Fed(deep)}, {{"blocksize", b}, {"mode", std::string("CRD")}})[0];
  ExpectIdentical(crd, FromIndices(DType::kFloat, {2, depth, 4, 6}, [&](const Index& i) {
                    return At(deep, {i[0], i[1] * 4 + i[2] % b * b + i[3] % b, i[2] / b, i[3] / b});
                  }));
}

}  // namespace
}  // namespace onnxtrain
