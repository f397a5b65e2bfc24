// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/json_literal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

TEST(JsonLiteralTest, TypesOfTheirOwn) {
  EXPECT_TRUE(ParseJsonLiteral("[[1,2],[3,4]]", "x")->Identical(Tensor::FromVector<int64_t>({2, 2}, {1, 2, 3, 4})));
  EXPECT_TRUE(ParseJsonLiteral(" 2.5 ", "x")->Identical(Tensor::Scalar<double>(2.5)));
  EXPECT_TRUE(ParseJsonLiteral("[1, -2e1]", "x")->Identical(Tensor::FromVector<double>({2}, {1, -20})));
  EXPECT_EQ(ParseJsonLiteral("[true,false]", "x")->type(), (TensorType{DType::kBool, {2}}));
  EXPECT_EQ(ParseJsonLiteral("[]", "x")->shape(), Shape{0});
  EXPECT_EQ(ParseJsonLiteral("[[],[]]", "x")->shape(), (Shape{2, 0}));
  EXPECT_TRUE(std::isnan(ParseJsonLiteral("[\"NaN\"]", "x")->DoubleAt(0)));
  EXPECT_EQ(ParseJsonLiteral("\"-Infinity\"", "x")->DoubleAt(0), -INFINITY);
}

TEST(JsonLiteralTest, TypesAskedFor) {
  EXPECT_TRUE(ParseJsonLiteral("[0.1,2]", "x", DType::kFloat)->Identical(Tensor::FromVector<float>({2}, {0.1f, 2})));
  EXPECT_TRUE(ParseJsonLiteral("[255]", "x", DType::kUint8)->Identical(Tensor::FromVector<uint8_t>({1}, {255})));
  EXPECT_EQ(ParseJsonLiteral("[1]", "x", DType::kBool)->type(), (TensorType{DType::kBool, {1}}));
  EXPECT_EQ(ParseJsonLiteral("1.5", "x", DType::kBfloat16)->DoubleAt(0), 1.5);
  EXPECT_DATA_ERROR(ParseJsonLiteral("[1,256]", "x", DType::kUint8),
                    "'x', byte 3: this number is not a value of uint8");
  EXPECT_DATA_ERROR(ParseJsonLiteral("[-1]", "x", DType::kUint64), "not a value of uint64");
  EXPECT_DATA_ERROR(ParseJsonLiteral("[1.5]", "x", DType::kInt64), "not a value of int64");
  EXPECT_DATA_ERROR(ParseJsonLiteral("[2]", "x", DType::kBool), "not a value of bool");
}

TEST(JsonLiteralTest, RefusesRaggedAndBrokenTexts) {
  EXPECT_DATA_ERROR(ParseJsonLiteral("[[1,2],[3]]", "x"), "byte 7: lists of different lengths: expected 2, found 1");
  EXPECT_DATA_ERROR(ParseJsonLiteral("[1,[2]]", "x"), "byte 3: a number is expected here");
  EXPECT_DATA_ERROR(ParseJsonLiteral("[[1],2]", "x"), "byte 5: a list is expected here");
  EXPECT_DATA_ERROR(ParseJsonLiteral("[[],1]", "x"), "a list is expected here");
  EXPECT_DATA_ERROR(ParseJsonLiteral("[1,]", "x"), "byte 3: a number");
  EXPECT_DATA_ERROR(ParseJsonLiteral("[1 2]", "x"), "',' or ']' is expected");
  EXPECT_DATA_ERROR(ParseJsonLiteral("[1", "x"), "',' or ']' is expected");
  EXPECT_DATA_ERROR(ParseJsonLiteral("[1]x", "x"), "text after the value");
  EXPECT_DATA_ERROR(ParseJsonLiteral("", "x"), "a number");
  EXPECT_DATA_ERROR(ParseJsonLiteral(std::string(100000, '['), "x"), "nested more than 16 deep");
}

TEST(JsonLiteralTest, IsRecognisedByItsStart) {
  for (const char* text : {"[1]", " -1", "3.5"}) EXPECT_TRUE(LooksLikeJsonLiteral(text)) << text;
  for (const char* text : {"", "x.npy", "/a"}) EXPECT_FALSE(LooksLikeJsonLiteral(text)) << text;
}

}  // namespace
}  // namespace onnxtrain
