// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/mapping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

StatusOr<Tensor> Map(const std::string& text, const Tensor& source) {
  ASSIGN_OR_RETURN(const Mapping mapping, Mapping::Parse(text));
  return ApplyMapping(mapping, source, "'x'");
}

Tensor AllBytes(Shape shape) {
  Tensor tensor(TensorType{DType::kUint8, std::move(shape)});
  uint8_t next = 0;
  for (uint8_t& value : tensor.values<uint8_t>()) value = next++;
  return tensor;
}

TEST(MappingTest, DividesInFloat32) {
  const Tensor bytes = AllBytes({256});
  for (const std::string map : {"f32,/255", "/255"}) {
    const auto mapped = Map(map, bytes);
    ASSERT_OK(mapped);
    for (int i = 0; i < 256; ++i)
      EXPECT_EQ(mapped->values<float>()[static_cast<size_t>(i)], static_cast<float>(i) / 255.0f);
  }
  const auto wide = Map("f64,/255", bytes);
  ASSERT_OK(wide);
  EXPECT_EQ(wide->values<double>()[7], 7.0 / 255.0);
}

TEST(MappingTest, StepsApplyInOrder) {
  const auto mapped = Map("f32,/255,mean=.1307,std=.3081", AllBytes({10, 3}));
  ASSERT_OK(mapped);
  EXPECT_EQ(mapped->shape(), (Shape{10, 3}));
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(mapped->values<float>()[i], (static_cast<float>(i) / 255.0f - 0.1307f) / 0.3081f);
  }
  EXPECT_EQ(Map("*2,/4", AllBytes({4}))->values<float>()[3], 1.5f);
}

TEST(MappingTest, MeanAndDeviationPerChannel) {
  const Tensor pixels = AllBytes({2, 3, 2, 2});
  const auto mapped = Map("f32,mean=1;2;3,std=2;4;8", pixels);
  ASSERT_OK(mapped);
  for (size_t i = 0; i < 24; ++i) {
    const size_t channel = i / 4 % 3;
    const float expected = (static_cast<float>(i) - static_cast<float>(channel + 1)) / static_cast<float>(2 << channel);
    EXPECT_EQ(mapped->values<float>()[i], expected) << i;
  }
  EXPECT_DATA_ERROR(Map("mean=1;2", pixels), "2 numbers need an axis 1 of as many, a row has shape [3,2,2]");
}

TEST(MappingTest, Shapes) {
  const Tensor bytes = AllBytes({2, 3, 4});
  EXPECT_EQ(Map("flatten", bytes)->shape(), (Shape{2, 12}));
  EXPECT_EQ(Map("reshape=1x12", bytes)->shape(), (Shape{2, 1, 12}));
  EXPECT_EQ(Map("reshape=-1x2", bytes)->shape(), (Shape{2, 6, 2}));
  EXPECT_EQ(Map("flatten", AllBytes({5}))->shape(), (Shape{5, 1}));
  EXPECT_TRUE(Map("flatten", bytes)->Identical(bytes.Reshaped({2, 12})));
  EXPECT_DATA_ERROR(Map("reshape=5", bytes), "a row of shape [3,4] has 12 elements");
  EXPECT_DATA_ERROR(Map("reshape=-1x5", bytes), "has 12 elements");
  EXPECT_EQ(Map("flatten,f32,/255", Tensor(TensorType{DType::kUint8, {0, 3}}))->type(),
            (TensorType{DType::kFloat, {0, 3}}));
}

TEST(MappingTest, ChannelsFirst) {
  const auto mapped = Map("nhwc2nchw,f32", AllBytes({2, 2, 3, 4}));
  ASSERT_OK(mapped);
  EXPECT_EQ(mapped->shape(), (Shape{2, 4, 2, 3}));
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t c = 0; c < 4; ++c) {
      for (int64_t p = 0; p < 6; ++p) EXPECT_EQ(mapped->DoubleAt((n * 4 + c) * 6 + p), (n * 6 + p) * 4 + c);
    }
  }
  EXPECT_DATA_ERROR(Map("nhwc2nchw", AllBytes({2, 3})), "[n,h,w,c] is expected");
}

TEST(MappingTest, OneHot) {
  const auto mapped = Map("onehot=3", Tensor::FromVector<int64_t>({3}, {2, 0, 1}));
  ASSERT_OK(mapped);
  EXPECT_TRUE(mapped->Identical(Tensor::FromVector<float>({3, 3}, {0, 0, 1, 1, 0, 0, 0, 1, 0})));
  EXPECT_DATA_ERROR(Map("onehot=3", Tensor::FromVector<uint8_t>({2}, {1, 3})),
                    "'x', row 1: element 0: map 'onehot=3': expected 0 to 2");
  EXPECT_DATA_ERROR(Map("onehot=3", Tensor::FromVector<int32_t>({1}, {-1})), "expected 0 to 2");
  EXPECT_DATA_ERROR(Map("onehot=3", Tensor::FromVector<float>({1}, {1})), "class numbers are integers, found float");
}

TEST(MappingTest, Rows) {
  const Tensor bytes = AllBytes({10, 2});
  EXPECT_TRUE(Map("[2:5]", bytes)->Identical(Tensor::FromVector<uint8_t>({3, 2}, {4, 5, 6, 7, 8, 9})));
  EXPECT_EQ(Map("[-3:]", bytes)->shape()[0], 3);
  EXPECT_EQ(Map("[:-3]", bytes)->shape()[0], 7);
  EXPECT_EQ(Map("[:]", bytes)->shape()[0], 10);
  EXPECT_EQ(Map("[10:10]", bytes)->shape()[0], 0);
  EXPECT_EQ(Map("[2:8],f32,[1:3]", bytes)->values<float>()[0], 6.0f);
  EXPECT_DATA_ERROR(Map("[5:11]", bytes), "map '[5:11]': there are 10 rows");
  EXPECT_DATA_ERROR(Map("[-11:]", bytes), "there are 10 rows");
  EXPECT_DATA_ERROR(Map("[5:4]", bytes), "the end lies before the first");
}

TEST(MappingTest, CastsThatCannotHoldTheValueAreErrors) {
  EXPECT_EQ(Map("i64", Tensor::FromVector<float>({2}, {2.9f, -2.9f}))->values<int64_t>()[1], -2);
  EXPECT_DATA_ERROR(Map("i32", Tensor::FromVector<int64_t>({2}, {1, int64_t{1} << 31})), "row 1: element 0: map 'i32'");
  EXPECT_EQ(Map("i32", Tensor::FromVector<int64_t>({1}, {-(int64_t{1} << 31)}))->IntAt(0), -(int64_t{1} << 31));
  for (double bad : {std::nan(""), 9.3e18, -9.3e18, std::numeric_limits<double>::infinity()}) {
    EXPECT_DATA_ERROR(Map("i64", Tensor::FromVector<double>({1}, {bad})), "not a value of int64");
  }
  EXPECT_EQ(Map("i64", Tensor::FromVector<double>({1}, {-9223372036854775808.0}))->IntAt(0), INT64_MIN);
  EXPECT_DATA_ERROR(Map("i64", Tensor::FromVector<uint64_t>({1}, {UINT64_MAX})), "not a value of int64");
}

TEST(MappingTest, EveryTypeIsASource) {
  for (DType dtype :
       {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBfloat16, DType::kUint8, DType::kInt8, DType::kUint16,
        DType::kInt16, DType::kUint32, DType::kInt32, DType::kUint64, DType::kInt64, DType::kBool}) {
    const Tensor source = Tensor::FromVector<int64_t>({3}, {0, 1, 1}).CastTo(dtype);
    for (const auto& [word, target] : {std::pair("f32", DType::kFloat), std::pair("f64", DType::kDouble),
                                       std::pair("i64", DType::kInt64), std::pair("i32", DType::kInt32)}) {
      const auto mapped = Map(word, source);
      ASSERT_OK(mapped);
      EXPECT_TRUE(mapped->Identical(source.CastTo(target))) << NameOf(dtype) << " " << word;
    }
  }
}

TEST(MappingTest, LargeRowsAndManyRowsCrossBlocks) {
  for (const Shape& shape : {Shape{3, 100003}, Shape{100003, 1}, Shape{1, 1}}) {
    const Tensor bytes = AllBytes(shape);
    const auto mapped = Map("f32,/255,*3", bytes);
    ASSERT_OK(mapped);
    for (int64_t i = 0; i < bytes.elements(); i += 97) {
      EXPECT_EQ(mapped->values<float>()[static_cast<size_t>(i)], static_cast<float>(bytes.IntAt(i)) / 255.0f * 3.0f);
    }
  }
}

TEST(MappingTest, ArithmeticNeedsATypeThatHoldsTheValues) {
  EXPECT_DATA_ERROR(Map("/2", Tensor::FromVector<int64_t>({1}, {1})), "put f32 or f64 before it: int64");
  EXPECT_EQ(Map("f32,/2", Tensor::FromVector<int64_t>({1}, {3}))->values<float>()[0], 1.5f);
  EXPECT_DATA_ERROR(Map("f32", Tensor::Scalar<float>(1)), "has no axis of samples");
}

TEST(MappingTest, CastsThatKeepEveryValue) {
  const std::vector<std::pair<DType, DType>> keep = {
      {DType::kUint8, DType::kFloat},   {DType::kUint8, DType::kInt64},    {DType::kInt32, DType::kDouble},
      {DType::kFloat16, DType::kFloat}, {DType::kBfloat16, DType::kFloat}, {DType::kFloat, DType::kDouble},
      {DType::kUint16, DType::kInt32},  {DType::kUint8, DType::kBfloat16}, {DType::kBool, DType::kFloat}};
  for (const auto& [from, to] : keep) EXPECT_TRUE(CastKeepsValues(from, to)) << NameOf(from) << " " << NameOf(to);
  const std::vector<std::pair<DType, DType>> lose = {
      {DType::kInt64, DType::kFloat},  {DType::kDouble, DType::kFloat},     {DType::kInt32, DType::kFloat},
      {DType::kInt8, DType::kUint8},   {DType::kUint64, DType::kInt64},     {DType::kFloat, DType::kInt64},
      {DType::kInt64, DType::kDouble}, {DType::kFloat16, DType::kBfloat16}, {DType::kUint8, DType::kBool}};
  for (const auto& [from, to] : lose) EXPECT_FALSE(CastKeepsValues(from, to)) << NameOf(from) << " " << NameOf(to);
}

TEST(MappingTest, RefusesUnknownWords) {
  EXPECT_USAGE_ERROR(Mapping::Parse("f16"), "map 'f16': unknown; known are f32 f64");
  EXPECT_USAGE_ERROR(Mapping::Parse(""), "unknown");
  EXPECT_USAGE_ERROR(Mapping::Parse("f32,"), "unknown");
  EXPECT_USAGE_ERROR(Mapping::Parse("/0"), "division by zero");
  EXPECT_USAGE_ERROR(Mapping::Parse("/x"), "a number is expected");
  EXPECT_USAGE_ERROR(Mapping::Parse("/1;2"), "a single number");
  EXPECT_USAGE_ERROR(Mapping::Parse("std=1;0"), "division by zero");
  EXPECT_USAGE_ERROR(Mapping::Parse("*inf"), "a number is expected");
  EXPECT_USAGE_ERROR(Mapping::Parse("reshape=1xx2"), "sizes joined by 'x'");
  EXPECT_USAGE_ERROR(Mapping::Parse("reshape=-1x-1"), "only one size may be -1");
  EXPECT_USAGE_ERROR(Mapping::Parse("onehot=0"), "the number of classes");
  EXPECT_USAGE_ERROR(Mapping::Parse("[1:2"), "a closing ']'");
  EXPECT_USAGE_ERROR(Mapping::Parse("[1]"), "[FIRST:END] is expected");
}

}  // namespace
}  // namespace onnxtrain
