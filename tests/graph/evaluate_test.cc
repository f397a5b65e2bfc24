// SPDX-License-Identifier: Apache-2.0
#include "graph/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace onnxtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

StatusOr<std::vector<Tensor>> TryAll(std::string_view op, const Attributes& attributes,
                                     const std::vector<Tensor>& inputs, size_t outputs = 1) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(input.dtype() == DType::kUndefined ? nullptr : &input);
  return Evaluate(op, attributes, pointers, outputs);
}

Tensor Result(std::string_view op, const std::vector<Tensor>& inputs, const Attributes& attributes = {}) {
  StatusOr<std::vector<Tensor>> result = TryAll(op, attributes, inputs);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? (*result)[0] : Tensor();
}

std::string ErrorOf(std::string_view op, const std::vector<Tensor>& inputs, const Attributes& attributes = {}) {
  StatusOr<std::vector<Tensor>> result = TryAll(op, attributes, inputs);
  EXPECT_FALSE(result.ok()) << op;
  return result.status().message();
}

Tensor Floats(Shape shape, std::vector<float> values) { return Tensor::FromVector<float>(std::move(shape), values); }
Tensor Longs(Shape shape, std::vector<int64_t> values) { return Tensor::FromVector<int64_t>(std::move(shape), values); }
Tensor Bools(Shape shape, std::vector<int64_t> values) { return Longs(std::move(shape), values).CastTo(DType::kBool); }
Tensor Ints(std::vector<int64_t> values) { return Tensor::Ints(values); }
Tensor Long(int64_t value) { return Tensor::Scalar<int64_t>(value); }
Tensor Iota(Shape shape) {
  Tensor result(TensorType{DType::kInt64, std::move(shape)});
  for (size_t i = 0; i < result.values<int64_t>().size(); ++i) result.values<int64_t>()[i] = static_cast<int64_t>(i);
  return result;
}

void ExpectIs(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(ToString(actual.type()), ToString(expected.type()));
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double wanted = expected.DoubleAt(i);
    const double found = actual.DoubleAt(i);
    if (!IsFloating(expected.dtype())) {
      EXPECT_EQ(actual.IntAt(i), expected.IntAt(i)) << "element " << i;
    } else if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(found)) << "element " << i;
    } else {
      EXPECT_DOUBLE_EQ(found, wanted) << "element " << i;
    }
  }
}

TEST(Evaluate, KnowsWhatItCanDo) {
  for (const char* op : {"Shape", "Gather", "Cast", "Range", "Where", "ScatterND", "TopK", "MatMul", "Constant"}) {
    EXPECT_TRUE(CanEvaluate(op)) << op;
  }
  for (const char* op : {"RandomNormal", "Dropout", "onnxtrain.AllReduce", "Conv", ""}) {
    EXPECT_FALSE(CanEvaluate(op)) << op;
  }
  EXPECT_THAT(ErrorOf("Conv", {}), HasSubstr("cannot be evaluated"));
  EXPECT_THAT(ErrorOf("Gather", {Ints({1})}), HasSubstr("input 1 is missing"));
  EXPECT_FALSE(TryAll("Shape", {}, {Ints({1})}, 2).ok());
}

TEST(Evaluate, Shape) {
  const Tensor x(TensorType{DType::kFloat, {2, 0, 3}});
  ExpectIs(Result("Shape", {x}), Ints({2, 0, 3}));
  ExpectIs(Result("Shape", {x}, {{"start", int64_t{-2}}, {"end", int64_t{9}}}), Ints({0, 3}));
  ExpectIs(Result("Shape", {x}, {{"start", int64_t{2}}, {"end", int64_t{1}}}), Ints({}));
  ExpectIs(Result("Shape", {Long(1)}), Ints({}));
  ExpectIs(Result("Size", {x}), Long(0));
}

TEST(Evaluate, FromTypeAlone) {
  const TensorType huge{DType::kFloat, {1 << 20, 1 << 20, 3}};
  ExpectIs(*EvaluateFromType("Shape", {{"start", int64_t{1}}}, huge), Ints({1 << 20, 3}));
  ExpectIs(*EvaluateFromType("Size", {}, huge), Long(int64_t{3} << 40));
  EXPECT_FALSE(EvaluateFromType("Identity", {}, huge).has_value());
  EXPECT_FALSE(EvaluateFromType("Shape", {{"start", 1.0f}}, huge).has_value());
}

TEST(Evaluate, Constants) {
  ExpectIs(Result("Constant", {}, {{"value", Ints({4, 5})}}), Ints({4, 5}));
  ExpectIs(Result("Constant", {}, {{"value_int", int64_t{7}}}), Long(7));
  ExpectIs(Result("Constant", {}, {{"value_floats", std::vector<float>{1.5f}}}), Floats({1}, {1.5f}));
  EXPECT_THAT(ErrorOf("Constant", {}, {{"value_string", std::string("x")}}), HasSubstr("no attribute"));
  ExpectIs(Result("ConstantOfShape", {Ints({2, 1})}), Floats({2, 1}, {0, 0}));
  ExpectIs(Result("ConstantOfShape", {Ints({})}, {{"value", Ints({3})}}), Long(3));
  ExpectIs(Result("ConstantOfShape", {Ints({0})}, {{"value", Ints({3})}}), Ints({}));
  EXPECT_FALSE(TryAll("ConstantOfShape", {}, {Ints({-1})}).ok());
  EXPECT_EQ(TryAll("ConstantOfShape", {}, {Ints({1 << 20, 1 << 20, 1 << 20})}).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_FALSE(TryAll("ConstantOfShape", {}, {Ints({INT64_MAX, INT64_MAX, 0})}).ok());
}

TEST(Evaluate, Range) {
  ExpectIs(Result("Range", {Long(2), Long(9), Long(3)}), Ints({2, 5, 8}));
  ExpectIs(Result("Range", {Long(2), Long(-3), Long(-2)}), Ints({2, 0, -2}));
  ExpectIs(Result("Range", {Long(2), Long(2), Long(1)}), Ints({}));
  ExpectIs(Result("Range", {Long(INT64_MAX - 1), Long(INT64_MAX), Long(5)}), Ints({INT64_MAX - 1}));
  ExpectIs(Result("Range", {Long(0), Long(INT64_MIN), Long(INT64_MIN)}), Ints({0}));
  ExpectIs(Result("Range", {Tensor::Scalar(0.0f), Tensor::Scalar(1.0f), Tensor::Scalar(0.375f)}),
           Floats({3}, {0, 0.375f, 0.75f}));
  EXPECT_THAT(ErrorOf("Range", {Long(0), Long(1), Long(0)}), HasSubstr("delta is zero"));
  EXPECT_FALSE(TryAll("Range", {}, {Long(INT64_MIN), Long(INT64_MAX), Long(1)}).ok());
  EXPECT_FALSE(TryAll("Range", {}, {Tensor::Scalar(0.0f), Tensor::Scalar(kInf), Tensor::Scalar(1.0f)}).ok());
}

TEST(Evaluate, EyeLike) {
  const Tensor x(TensorType{DType::kFloat, {2, 3}});
  ExpectIs(Result("EyeLike", {x}), Floats({2, 3}, {1, 0, 0, 0, 1, 0}));
  ExpectIs(Result("EyeLike", {x}, {{"k", int64_t{-1}}, {"dtype", int64_t{7}}}), Longs({2, 3}, {0, 0, 0, 1, 0, 0}));
  ExpectIs(Result("EyeLike", {x}, {{"k", INT64_MAX}}), Floats({2, 3}, {0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(TryAll("EyeLike", {{"dtype", int64_t{8}}}, {x}).ok());
}

TEST(Evaluate, Reshapes) {
  const Tensor x = Iota({2, 3, 4});
  ExpectIs(Result("Reshape", {x, Ints({0, -1})}), Iota({2, 12}));
  ExpectIs(Result("Reshape", {x, Ints({24})}), Iota({24}));
  ExpectIs(Result("Reshape", {Iota({0, 3}), Ints({3, 0})}, {{"allowzero", int64_t{1}}}), Iota({3, 0}));
  EXPECT_THAT(ErrorOf("Reshape", {x, Ints({5, -1})}), HasSubstr("cannot reshape"));
  EXPECT_THAT(ErrorOf("Reshape", {x, Ints({-1, -1})}), HasSubstr("two dimensions open"));
  EXPECT_FALSE(TryAll("Reshape", {}, {x, Ints({INT64_MAX, INT64_MAX})}).ok());
  EXPECT_FALSE(TryAll("Reshape", {}, {x, Ints({1, 1, 1, 0})}).ok());
  EXPECT_FALSE(TryAll("Reshape", {}, {x, Ints({-2, 12})}).ok());
  ExpectIs(Result("Flatten", {x}), Iota({2, 12}));
  ExpectIs(Result("Flatten", {x}, {{"axis", int64_t{-1}}}), Iota({6, 4}));
  ExpectIs(Result("Flatten", {x}, {{"axis", int64_t{0}}}), Iota({1, 24}));
  ExpectIs(Result("Squeeze", {Iota({1, 2, 1})}), Iota({2}));
  ExpectIs(Result("Squeeze", {Iota({1, 2, 1}), Ints({-1})}), Iota({1, 2}));
  EXPECT_FALSE(TryAll("Squeeze", {}, {x, Ints({0})}).ok());
  ExpectIs(Result("Unsqueeze", {Iota({2}), Ints({-1, 0})}), Iota({1, 2, 1}));
  EXPECT_FALSE(TryAll("Unsqueeze", {}, {x, Ints({0, 0})}).ok());
  EXPECT_FALSE(TryAll("Unsqueeze", {}, {x, Ints({4})}).ok());
}

TEST(Evaluate, Casts) {
  const Tensor x = Floats({5}, {-1.9f, 1.9f, kNan, 1e30f, -kInf});
  ExpectIs(Result("Cast", {x}, {{"to", int64_t{7}}}), Ints({-1, 1, 0, INT64_MAX, INT64_MIN}));
  ExpectIs(Result("Cast", {x}, {{"to", int64_t{2}}}), Ints({0, 1, 0, 255, 0}).CastTo(DType::kUint8));
  ExpectIs(Result("Cast", {x}, {{"to", int64_t{9}}}), Bools({5}, {1, 1, 1, 1, 1}));
  ExpectIs(Result("Cast", {Ints({300, -1})}, {{"to", int64_t{2}}}), Ints({44, 255}).CastTo(DType::kUint8));
  ExpectIs(Result("CastLike", {Ints({0, 2}), x}), Floats({2}, {0, 2}));
  EXPECT_EQ(Result("Cast", {Floats({1}, {1.0f / 3})}, {{"to", int64_t{10}}}).DoubleAt(0), 0.333251953125);
  EXPECT_FALSE(TryAll("Cast", {{"to", int64_t{8}}}, {x}).ok());
  EXPECT_FALSE(TryAll("Cast", {{"to", int64_t{999}}}, {x}).ok());
  EXPECT_FALSE(TryAll("Cast", {}, {x}).ok());
}

TEST(Evaluate, MovesElements) {
  const Tensor x = Iota({2, 3});
  ExpectIs(Result("Concat", {x, Longs({2, 1}, {7, 8})}, {{"axis", int64_t{1}}}),
           Longs({2, 4}, {0, 1, 2, 7, 3, 4, 5, 8}));
  ExpectIs(Result("Concat", {Ints({}), Ints({1}), Ints({2, 3})}, {{"axis", int64_t{0}}}), Ints({1, 2, 3}));
  EXPECT_FALSE(TryAll("Concat", {{"axis", int64_t{0}}}, {x, Longs({2, 1}, {7, 8})}).ok());
  EXPECT_FALSE(TryAll("Concat", {{"axis", int64_t{0}}}, {x, Floats({2, 3}, {0, 0, 0, 0, 0, 0})}).ok());
  ExpectIs(Result("Transpose", {x}), Longs({3, 2}, {0, 3, 1, 4, 2, 5}));
  ExpectIs(Result("Transpose", {Iota({1, 2, 2})}, {{"perm", std::vector<int64_t>{2, 0, 1}}}),
           Longs({2, 1, 2}, {0, 2, 1, 3}));
  EXPECT_FALSE(TryAll("Transpose", {{"perm", std::vector<int64_t>{0, 0}}}, {x}).ok());
  EXPECT_FALSE(TryAll("Transpose", {{"perm", std::vector<int64_t>{0}}}, {x}).ok());
  ExpectIs(Result("Expand", {Longs({2, 1}, {1, 2}), Ints({2, 2, 3})}),
           Longs({2, 2, 3}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
  ExpectIs(Result("Expand", {x, Ints({1})}), x);
  EXPECT_FALSE(TryAll("Expand", {}, {x, Ints({2, 2})}).ok());
  ExpectIs(Result("Tile", {x, Ints({2, 2})}),
           Longs({4, 6}, {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5, 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  ExpectIs(Result("Tile", {x, Ints({1, 0})}), Iota({2, 0}));
  EXPECT_FALSE(TryAll("Tile", {}, {x, Ints({INT64_MAX, INT64_MAX})}).ok());
  ExpectIs(Result("Where", {Bools({2, 1}, {1, 0}), x, Long(9)}), Longs({2, 3}, {0, 1, 2, 9, 9, 9}));
  EXPECT_FALSE(TryAll("Where", {}, {x, x, x}).ok());
  ExpectIs(Result("Identity", {x}), x);
}

TEST(Evaluate, Split) {
  StatusOr<std::vector<Tensor>> parts = TryAll("Split", {{"axis", int64_t{-1}}}, {Iota({2, 3}), Ints({1, 2})}, 2);
  ASSERT_TRUE(parts.ok());
  ExpectIs((*parts)[0], Longs({2, 1}, {0, 3}));
  ExpectIs((*parts)[1], Longs({2, 2}, {1, 2, 4, 5}));
  parts = TryAll("Split", {{"num_outputs", int64_t{3}}}, {Iota({7})}, 3);
  ASSERT_TRUE(parts.ok());
  ExpectIs((*parts)[0], Ints({0, 1, 2}));
  ExpectIs((*parts)[2], Ints({6}));
  EXPECT_FALSE(TryAll("Split", {}, {Iota({7}), Ints({3, 3})}, 2).ok());
  EXPECT_FALSE(TryAll("Split", {}, {Iota({7}), Ints({8, -1})}, 2).ok());
  EXPECT_FALSE(TryAll("Split", {{"num_outputs", int64_t{0}}}, {Iota({7})}, 1).ok());
}

TEST(Evaluate, Slice) {
  const Tensor x = Iota({5});
  const auto slice = [&](int64_t start, int64_t end, int64_t step) {
    return Result("Slice", {x, Ints({start}), Ints({end}), Ints({0}), Ints({step})});
  };
  ExpectIs(slice(1, 4, 1), Ints({1, 2, 3}));
  ExpectIs(slice(-2, INT64_MAX, 1), Ints({3, 4}));
  ExpectIs(slice(INT64_MIN, 2, 1), Ints({0, 1}));
  ExpectIs(slice(-1, INT64_MIN, -1), Ints({4, 3, 2, 1, 0}));
  ExpectIs(slice(INT64_MAX, 0, -2), Ints({4, 2}));
  ExpectIs(slice(0, 5, INT64_MAX), Ints({0}));
  ExpectIs(slice(4, INT64_MIN, INT64_MIN), Ints({4}));
  ExpectIs(slice(3, 3, 1), Ints({}));
  ExpectIs(slice(9, 12, 1), Ints({}));
  ExpectIs(Result("Slice", {Iota({2, 3}), Ints({1}), Ints({3}), Ints({-1})}), Longs({2, 2}, {1, 2, 4, 5}));
  ExpectIs(Result("Slice", {Iota({2, 3}), Ints({1, 0}), Ints({2, 2})}), Longs({1, 2}, {3, 4}));
  EXPECT_FALSE(TryAll("Slice", {}, {x, Ints({0}), Ints({1}), Ints({0}), Ints({0})}).ok());
  EXPECT_FALSE(TryAll("Slice", {}, {x, Ints({0, 0}), Ints({1, 1}), Ints({0, 0})}).ok());
  EXPECT_FALSE(TryAll("Slice", {}, {x, Ints({0}), Ints({1, 2})}).ok());
}

TEST(Evaluate, PadAndTrilu) {
  ExpectIs(Result("Pad", {Iota({2, 2}), Ints({0, 1, 1, 0}), Long(9)}), Longs({3, 3}, {9, 0, 1, 9, 2, 3, 9, 9, 9}));
  ExpectIs(Result("Pad", {Iota({3}), Ints({-1, 1})}), Ints({1, 2, 0}));
  ExpectIs(Result("Pad", {Iota({1, 3}), Ints({1, 1}), Tensor(), Ints({1})}), Longs({1, 5}, {0, 0, 1, 2, 0}));
  ExpectIs(Result("Pad", {Iota({3}), Ints({2, 2})}, {{"mode", std::string("reflect")}}), Ints({2, 1, 0, 1, 2, 1, 0}));
  ExpectIs(Result("Pad", {Iota({3}), Ints({1, 2})}, {{"mode", std::string("edge")}}), Ints({0, 0, 1, 2, 2, 2}));
  ExpectIs(Result("Pad", {Iota({3}), Ints({1, 4})}, {{"mode", std::string("wrap")}}), Ints({2, 0, 1, 2, 0, 1, 2, 0}));
  EXPECT_FALSE(TryAll("Pad", {}, {Iota({3}), Ints({-2, -2})}).ok());
  EXPECT_FALSE(TryAll("Pad", {}, {Iota({3}), Ints({INT64_MAX, INT64_MAX})}).ok());
  ExpectIs(Result("Trilu", {Iota({2, 3})}), Longs({2, 3}, {0, 1, 2, 0, 4, 5}));
  ExpectIs(Result("Trilu", {Iota({2, 3}), Long(-1)}, {{"upper", int64_t{0}}}), Longs({2, 3}, {0, 0, 0, 3, 0, 0}));
  ExpectIs(Result("Trilu", {Iota({2, 2}), Long(INT64_MIN)}), Iota({2, 2}));
  ExpectIs(Result("Trilu", {Iota({0, 2})}), Iota({0, 2}));
}

TEST(Evaluate, Gathers) {
  const Tensor x = Iota({3, 2});
  ExpectIs(Result("Gather", {x, Longs({1, 2}, {2, -3})}), Longs({1, 2, 2}, {4, 5, 0, 1}));
  ExpectIs(Result("Gather", {x, Long(1)}, {{"axis", int64_t{1}}}), Ints({1, 3, 5}));
  ExpectIs(Result("Gather", {x, Ints({})}), Iota({0, 2}));
  EXPECT_THAT(ErrorOf("Gather", {x, Ints({3})}), HasSubstr("index 3 is out of range for an axis of 3"));
  EXPECT_FALSE(TryAll("Gather", {}, {x, Floats({1}, {0})}).ok());
  EXPECT_FALSE(TryAll("Gather", {}, {Long(1), Ints({0})}).ok());
  ExpectIs(Result("GatherElements", {x, Longs({2, 2}, {0, -1, 2, 0})}), Longs({2, 2}, {0, 5, 4, 1}));
  EXPECT_FALSE(TryAll("GatherElements", {}, {x, Longs({1, 3}, {0, 0, 0})}).ok());
  ExpectIs(Result("GatherND", {x, Longs({2, 2}, {0, 1, -1, 0})}), Ints({1, 4}));
  ExpectIs(Result("GatherND", {x, Longs({2, 1}, {1, 0})}), Longs({2, 2}, {2, 3, 0, 1}));
  ExpectIs(Result("GatherND", {x, Longs({3, 1}, {1, 0, 1})}, {{"batch_dims", int64_t{1}}}), Ints({1, 2, 5}));
  EXPECT_FALSE(TryAll("GatherND", {}, {x, Longs({1, 3}, {0, 0, 0})}).ok());
  EXPECT_FALSE(TryAll("GatherND", {}, {x, Longs({1, 2}, {0, 2})}).ok());
  EXPECT_FALSE(TryAll("GatherND", {{"batch_dims", int64_t{7}}}, {x, Longs({1, 2}, {0, 0})}).ok());
  ExpectIs(Result("OneHot", {Ints({1, -1, 5}), Long(3), Ints({0, 1})}), Longs({3, 3}, {0, 1, 0, 0, 0, 1, 0, 0, 0}));
  ExpectIs(Result("OneHot", {Ints({1, 0}), Long(2), Ints({5, 7})}, {{"axis", int64_t{0}}}),
           Longs({2, 2}, {5, 7, 7, 5}));
  ExpectIs(Result("NonZero", {Longs({2, 2}, {1, 0, 0, 3})}), Longs({2, 2}, {0, 1, 0, 1}));
  ExpectIs(Result("NonZero", {Ints({})}), Iota({1, 0}));
}

TEST(Evaluate, Scatters) {
  const Tensor x = Iota({3, 2});
  ExpectIs(Result("ScatterElements", {x, Longs({1, 2}, {2, -3}), Longs({1, 2}, {8, 9})}),
           Longs({3, 2}, {0, 9, 2, 3, 8, 5}));
  ExpectIs(Result("ScatterElements", {Ints({1, 1}), Ints({0, 0}), Ints({2, 3})}, {{"reduction", std::string("add")}}),
           Ints({6, 1}));
  ExpectIs(Result("ScatterElements", {Ints({1, 7}), Ints({0, 1}), Ints({2, 3})}, {{"reduction", std::string("max")}}),
           Ints({2, 7}));
  EXPECT_FALSE(TryAll("ScatterElements", {}, {x, Longs({1, 2}, {3, 0}), Longs({1, 2}, {8, 9})}).ok());
  EXPECT_FALSE(TryAll("ScatterElements", {{"reduction", std::string("or")}}, {x, x, x}).ok());
  ExpectIs(Result("ScatterND", {x, Longs({1, 1}, {1}), Longs({1, 2}, {8, 9})}), Longs({3, 2}, {0, 1, 8, 9, 4, 5}));
  ExpectIs(Result("ScatterND", {x, Longs({2, 2}, {0, 0, -1, -1}), Ints({8, 9})}), Longs({3, 2}, {8, 1, 2, 3, 4, 9}));
  EXPECT_FALSE(TryAll("ScatterND", {}, {x, Longs({1, 1}, {1}), Ints({8, 9})}).ok());
  const Tensor halves = Floats({2}, {1, 2}).CastTo(DType::kFloat16);
  ExpectIs(Result("ScatterElements", {halves, Ints({0}), Floats({1}, {5}).CastTo(DType::kFloat16)}),
           Floats({2}, {5, 2}).CastTo(DType::kFloat16));
}

TEST(Evaluate, IntegerArithmetic) {
  ExpectIs(Result("Add", {Longs({2, 1}, {1, 2}), Ints({10, 20})}), Longs({2, 2}, {11, 21, 12, 22}));
  ExpectIs(Result("Add", {Long(INT64_MAX), Long(1)}), Long(INT64_MIN));
  ExpectIs(Result("Mul", {Ints({65535}).CastTo(DType::kUint16), Ints({65535}).CastTo(DType::kUint16)}),
           Ints({1}).CastTo(DType::kUint16));
  ExpectIs(Result("Sub", {Ints({}), Ints({1})}), Ints({}));
  ExpectIs(Result("Div", {Ints({7, -7}), Long(2)}), Ints({3, -3}));
  ExpectIs(Result("Div", {Long(INT64_MIN), Long(-1)}), Long(INT64_MIN));
  EXPECT_THAT(ErrorOf("Div", {Long(1), Long(0)}), HasSubstr("by zero"));
  ExpectIs(Result("Mod", {Ints({7, -7, 7, -7}), Ints({3, 3, -3, -3})}), Ints({1, 2, -2, -1}));
  ExpectIs(Result("Mod", {Ints({7, -7}), Ints({3, 3})}, {{"fmod", int64_t{1}}}), Ints({1, -1}));
  ExpectIs(Result("Mod", {Long(INT64_MIN), Long(-1)}), Long(0));
  EXPECT_FALSE(TryAll("Mod", {}, {Long(1), Long(0)}).ok());
  ExpectIs(Result("Pow", {Ints({2, -1, 3, 0}), Ints({10, 3, -1, 0})}), Ints({1024, -1, 0, 1}));
  ExpectIs(Result("Pow", {Ints({4}), Floats({1}, {0.5f})}), Ints({2}));
  ExpectIs(Result("Neg", {Ints({INT64_MIN, 1})}), Ints({INT64_MIN, -1}));
  ExpectIs(Result("Abs", {Ints({INT64_MIN, -1})}), Ints({INT64_MIN, 1}));
  ExpectIs(Result("Sign", {Ints({-5, 0, 5})}), Ints({-1, 0, 1}));
  ExpectIs(Result("Max", {Ints({1, 5}), Long(3), Ints({0, 9})}), Ints({3, 9}));
  ExpectIs(Result("Min", {Ints({1, 5})}), Ints({1, 5}));
  ExpectIs(Result("Sum", {Ints({1}), Ints({2}), Ints({3})}), Ints({6}));
  EXPECT_FALSE(TryAll("Add", {}, {Ints({1, 2}), Ints({1, 2, 3})}).ok());
  EXPECT_FALSE(TryAll("Add", {}, {Ints({1}), Floats({1}, {1})}).ok());
  EXPECT_FALSE(TryAll("Add", {}, {Bools({1}, {1}), Bools({1}, {1})}).ok());
}

TEST(Evaluate, FloatArithmetic) {
  ExpectIs(Result("Div", {Floats({2}, {1, 0}), Tensor::Scalar(0.0f)}), Floats({2}, {kInf, kNan}));
  ExpectIs(Result("Mod", {Floats({1}, {-7.5f}), Floats({1}, {2})}, {{"fmod", int64_t{1}}}), Floats({1}, {-1.5f}));
  ExpectIs(Result("Mod", {Floats({4}, {-7.5f, 7.5f, 4, 1}), Floats({4}, {2, -2, 2, 0})}),
           Floats({4}, {0.5f, -0.5f, 0, kNan}));
  ExpectIs(Result("Pow", {Floats({2}, {3, 4}), Ints({2})}), Floats({2}, {9, 16}));
  ExpectIs(Result("Mean", {Floats({1}, {1}), Floats({1}, {4})}), Floats({1}, {2.5f}));
  ExpectIs(Result("Max", {Floats({2}, {kNan, 1}), Floats({2}, {1, kNan})}), Floats({2}, {kNan, kNan}));
  ExpectIs(Result("Sqrt", {Floats({2}, {4, -1})}), Floats({2}, {2, kNan}));
  ExpectIs(Result("Reciprocal", {Floats({1}, {4})}), Floats({1}, {0.25f}));
  ExpectIs(Result("Round", {Floats({4}, {0.5f, 1.5f, -2.5f, 2.6f})}), Floats({4}, {0, 2, -2, 3}));
  ExpectIs(Result("Floor", {Floats({1}, {-0.5f})}), Floats({1}, {-1}));
  ExpectIs(Result("Ceil", {Floats({1}, {0.5f})}), Floats({1}, {1}));
  ExpectIs(Result("Exp", {Floats({1}, {0})}), Floats({1}, {1}));
  ExpectIs(Result("Log", {Floats({1}, {0})}), Floats({1}, {-kInf}));
  ExpectIs(Result("Sigmoid", {Floats({3}, {0, 1e4f, -1e4f})}), Floats({3}, {0.5f, 1, 0}));
  ExpectIs(Result("Relu", {Floats({3}, {-1, 2, kNan})}), Floats({3}, {0, 2, kNan}));
  ExpectIs(Result("Clip", {Floats({4}, {-1, 2, 5, kNan}), Tensor::Scalar(0.0f), Tensor::Scalar(3.0f)}),
           Floats({4}, {0, 2, 3, kNan}));
  ExpectIs(Result("Clip", {Ints({-1, 5}), Tensor(), Long(3)}), Ints({-1, 3}));
  EXPECT_DOUBLE_EQ(Result("Erf", {Tensor::Scalar(0.5)}).DoubleAt(0), std::erf(0.5));
  EXPECT_DOUBLE_EQ(Result("Tanh", {Tensor::Scalar(0.5)}).DoubleAt(0), std::tanh(0.5));
  EXPECT_DOUBLE_EQ(Result("Sin", {Tensor::Scalar(0.5)}).DoubleAt(0), std::sin(0.5));
  EXPECT_DOUBLE_EQ(Result("Cos", {Tensor::Scalar(0.5)}).DoubleAt(0), std::cos(0.5));
  EXPECT_FALSE(TryAll("Exp", {}, {Ints({1})}).ok());
}

TEST(Evaluate, SixteenBitFloatsRoundOnce) {
  const Tensor x = Floats({2}, {1, 2048}).CastTo(DType::kFloat16);
  ExpectIs(Result("Add", {x, x}), Floats({2}, {2, 4096}).CastTo(DType::kFloat16));
  const Tensor one = Floats({1}, {1}).CastTo(DType::kBfloat16);
  EXPECT_EQ(Result("Exp", {one}).dtype(), DType::kBfloat16);
  EXPECT_EQ(Result("Greater", {x, x}).dtype(), DType::kBool);
  // 2048 + 1 + 1 is 2050 in float; rounding after each addition would stay at 2048.
  ExpectIs(Result("ReduceSum", {Floats({3}, {2048, 1, 1}).CastTo(DType::kFloat16)}, {{"keepdims", int64_t{0}}}),
           Tensor::Scalar(2050.0f).CastTo(DType::kFloat16));
}

TEST(Evaluate, Logic) {
  ExpectIs(Result("Equal", {Ints({1, 2}), Long(2)}), Bools({2}, {0, 1}));
  ExpectIs(Result("Equal", {Bools({2}, {0, 1}), Bools({1}, {1})}), Bools({2}, {0, 1}));
  ExpectIs(Result("Greater", {Floats({2}, {1, kNan}), Tensor::Scalar(0.0f)}), Bools({2}, {1, 0}));
  ExpectIs(Result("GreaterOrEqual", {Ints({1, 2}), Long(2)}), Bools({2}, {0, 1}));
  ExpectIs(Result("Less", {Ints({1, 2}), Long(2)}), Bools({2}, {1, 0}));
  ExpectIs(Result("LessOrEqual", {Ints({1, 3}), Long(2)}), Bools({2}, {1, 0}));
  const Tensor a = Bools({2, 1}, {0, 1});
  const Tensor b = Bools({2}, {0, 1});
  ExpectIs(Result("And", {a, b}), Bools({2, 2}, {0, 0, 0, 1}));
  ExpectIs(Result("Or", {a, b}), Bools({2, 2}, {0, 1, 1, 1}));
  ExpectIs(Result("Xor", {a, b}), Bools({2, 2}, {0, 1, 1, 0}));
  ExpectIs(Result("Not", {b}), Bools({2}, {1, 0}));
  EXPECT_FALSE(TryAll("And", {}, {Ints({1}), Ints({1})}).ok());
  EXPECT_FALSE(TryAll("Not", {}, {Ints({1})}).ok());
  ExpectIs(Result("BitwiseAnd", {Ints({6}), Ints({3})}), Ints({2}));
  ExpectIs(Result("BitwiseOr", {Ints({6}), Ints({3})}), Ints({7}));
  ExpectIs(Result("BitwiseXor", {Ints({6}), Ints({3})}), Ints({5}));
  EXPECT_FALSE(TryAll("BitwiseOr", {}, {Floats({1}, {1}), Floats({1}, {1})}).ok());
  ExpectIs(Result("IsNaN", {Floats({2}, {kNan, 1})}), Bools({2}, {1, 0}));
  ExpectIs(Result("IsInf", {Floats({3}, {kInf, -kInf, 1})}, {{"detect_negative", int64_t{0}}}), Bools({3}, {1, 0, 0}));
}

TEST(Evaluate, Reductions) {
  const Tensor x = Iota({2, 3});
  ExpectIs(Result("ReduceSum", {x}), Longs({1, 1}, {15}));
  ExpectIs(Result("ReduceSum", {x, Ints({-1})}, {{"keepdims", int64_t{0}}}), Ints({3, 12}));
  ExpectIs(Result("ReduceSum", {x, Ints({0})}), Longs({1, 3}, {3, 5, 7}));
  ExpectIs(Result("ReduceSum", {x, Ints({})}, {{"noop_with_empty_axes", int64_t{1}}}), x);
  ExpectIs(Result("ReduceProd", {Ints({2, 3, 4})}, {{"keepdims", int64_t{0}}}), Long(24));
  ExpectIs(Result("ReduceMax", {x, Ints({0})}, {{"keepdims", int64_t{0}}}), Ints({3, 4, 5}));
  ExpectIs(Result("ReduceMin", {x, Ints({1})}, {{"keepdims", int64_t{0}}}), Ints({0, 3}));
  ExpectIs(Result("ReduceMax", {Bools({2, 2}, {0, 0, 0, 1}), Ints({1})}, {{"keepdims", int64_t{0}}}),
           Bools({2}, {0, 1}));
  ExpectIs(Result("ReduceMean", {Floats({2}, {1, 2})}, {{"keepdims", int64_t{0}}}), Tensor::Scalar(1.5f));
  ExpectIs(Result("ReduceMean", {Tensor(TensorType{DType::kInt8, {256}})}), Ints({0}).CastTo(DType::kInt8));
  ExpectIs(Result("ReduceSum", {Tensor(TensorType{DType::kFloat, {0}})}), Floats({1}, {0}));
  ExpectIs(Result("ReduceMax", {Tensor(TensorType{DType::kFloat, {0}})}), Floats({1}, {-kInf}));
  ExpectIs(Result("ReduceMax", {Floats({3}, {1, kNan, 2})}), Floats({1}, {kNan}));
  EXPECT_FALSE(TryAll("ReduceMean", {}, {Ints({})}).ok());
  EXPECT_FALSE(TryAll("ReduceSum", {}, {x, Ints({2})}).ok());
  EXPECT_FALSE(TryAll("ReduceSum", {}, {x, Ints({0, -2})}).ok());
  ExpectIs(Result("ArgMax", {Longs({2, 3}, {1, 5, 5, 7, 2, 3})}, {{"axis", int64_t{1}}}), Longs({2, 1}, {1, 0}));
  ExpectIs(Result("ArgMax", {Ints({5, 5})}, {{"select_last_index", int64_t{1}}, {"keepdims", int64_t{0}}}), Long(1));
  ExpectIs(Result("ArgMin", {Ints({5, 3})}), Ints({1}));
  EXPECT_FALSE(TryAll("ArgMax", {}, {Ints({})}).ok());
  ExpectIs(Result("CumSum", {x, Long(1)}), Longs({2, 3}, {0, 1, 3, 3, 7, 12}));
  ExpectIs(Result("CumSum", {Ints({1, 2, 3}), Long(0)}, {{"exclusive", int64_t{1}}}), Ints({0, 1, 3}));
  ExpectIs(Result("CumSum", {Ints({1, 2, 3}), Long(0)}, {{"reverse", int64_t{1}}}), Ints({6, 5, 3}));
  ExpectIs(Result("CumSum", {Iota({2, 0}), Long(0)}), Iota({2, 0}));
}

TEST(Evaluate, TopKAndMatMul) {
  StatusOr<std::vector<Tensor>> top = TryAll("TopK", {}, {Floats({1, 4}, {1, 3, kNan, 3}), Ints({3})}, 2);
  ASSERT_TRUE(top.ok());
  ExpectIs((*top)[0], Floats({1, 3}, {kNan, 3, 3}));
  ExpectIs((*top)[1], Longs({1, 3}, {2, 1, 3}));
  top = TryAll("TopK", {{"axis", int64_t{0}}, {"largest", int64_t{0}}}, {Iota({3, 2}), Ints({1})}, 2);
  ASSERT_TRUE(top.ok());
  ExpectIs((*top)[0], Longs({1, 2}, {0, 1}));
  EXPECT_FALSE(TryAll("TopK", {}, {Ints({1}), Ints({2})}, 2).ok());
  ExpectIs(Result("MatMul", {Iota({2, 3}), Iota({3, 2})}), Longs({2, 2}, {10, 13, 28, 40}));
  ExpectIs(Result("MatMul", {Iota({3}), Iota({3})}), Long(5));
  ExpectIs(Result("MatMul", {Iota({2, 1, 2}), Iota({2, 1})}), Longs({2, 1, 1}, {1, 3}));
  ExpectIs(Result("MatMul", {Iota({2}), Iota({3, 2, 1})}), Longs({3, 1}, {1, 3, 5}));
  ExpectIs(Result("MatMul", {Iota({2, 0}), Iota({0, 1})}), Longs({2, 1}, {0, 0}));
  EXPECT_FALSE(TryAll("MatMul", {}, {Iota({2, 3}), Iota({2, 3})}).ok());
  EXPECT_FALSE(TryAll("MatMul", {}, {Long(1), Iota({2})}).ok());
}

TEST(Evaluate, RefusesAttributesOfTheWrongKind) {
  EXPECT_THAT(ErrorOf("Gather", {Ints({1}), Ints({0})}, {{"axis", std::string("x")}}), HasSubstr("wrong kind"));
  EXPECT_FALSE(TryAll("Transpose", {{"perm", int64_t{1}}}, {Ints({1})}).ok());
  EXPECT_FALSE(TryAll("ConstantOfShape", {{"value", int64_t{1}}}, {Ints({1})}).ok());
}

}  // namespace
}  // namespace onnxtrain
