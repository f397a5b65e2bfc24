// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/column.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

std::unique_ptr<Column> MakeColumn(const std::string& map, std::vector<Tensor> pieces) {
  std::vector<ArrayPiece> arrays;
  for (Tensor& tensor : pieces) arrays.push_back({"file" + std::to_string(arrays.size()), Array(std::move(tensor))});
  auto column = MakeArrayColumn("x", std::move(arrays), map.empty() ? Mapping() : *Mapping::Parse(map));
  CHECK(column.ok());
  return std::move(column).value();
}

StatusOr<Tensor> Gather(const Column& column, const std::vector<int64_t>& samples) {
  Tensor result(column.BatchType(static_cast<int64_t>(samples.size())));
  ColumnScratch scratch = column.MakeScratch();
  RETURN_IF_ERROR(column.Gather(samples, scratch, result.data()));
  return result;
}

TEST(ColumnTest, GathersRowsInTheOrderAsked) {
  const auto column = MakeColumn("", {Tensor::FromVector<int32_t>({3, 2}, {0, 1, 10, 11, 20, 21})});
  EXPECT_EQ(column->samples(), 3);
  EXPECT_TRUE(Gather(*column, {2, 0, 2})->Identical(Tensor::FromVector<int32_t>({3, 2}, {20, 21, 0, 1, 20, 21})));
  EXPECT_EQ(Gather(*column, {})->shape(), (Shape{0, 2}));
}

TEST(ColumnTest, SeveralFilesAreOne) {
  const auto column =
      MakeColumn("[1:5],f32", {Tensor::FromVector<uint8_t>({2}, {0, 1}), Tensor::FromVector<uint8_t>({0}, {}),
                               Tensor::FromVector<uint8_t>({4}, {2, 3, 4, 5})});
  EXPECT_EQ(column->samples(), 4);
  EXPECT_TRUE(Gather(*column, {0, 1, 2, 3})->Identical(Tensor::FromVector<float>({4}, {1, 2, 3, 4})));
  std::vector<ArrayPiece> unequal;
  unequal.push_back({"a", Array(Tensor(TensorType{DType::kFloat, {2, 3}}))});
  unequal.push_back({"b", Array(Tensor(TensorType{DType::kFloat, {2, 4}}))});
  EXPECT_DATA_ERROR(MakeArrayColumn("x", std::move(unequal), Mapping()), "the rows of 'b' are float[4]");
}

TEST(ColumnTest, ManyRowsCrossBlocks) {
  std::vector<uint8_t> values(100003);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i * 31);
  const auto column = MakeColumn("f32,/255", {Tensor::FromVector<uint8_t>({100003}, values)});
  std::vector<int64_t> samples;
  for (int64_t i = 100002; i >= 0; --i) samples.push_back(i);
  const auto gathered = Gather(*column, samples);
  ASSERT_OK(gathered);
  for (size_t i = 0; i < samples.size(); ++i) {
    ASSERT_EQ(gathered->values<float>()[i], static_cast<float>(values[values.size() - 1 - i]) / 255.0f);
  }
}

TEST(ColumnTest, CastsToTheInputWhereNoValueChanges) {
  const auto labels = MakeColumn("", {Tensor::FromVector<uint8_t>({2}, {3, 4})});
  ASSERT_OK(labels->CastTo(DType::kInt64));
  EXPECT_TRUE(Gather(*labels, {1, 0})->Identical(Tensor::FromVector<int64_t>({2}, {4, 3})));
  const auto wide = MakeColumn("", {Tensor::FromVector<int64_t>({1}, {3})});
  EXPECT_DATA_ERROR(wide->CastTo(DType::kFloat), "'x' from 'file0': expected float, found int64");
  EXPECT_DATA_ERROR(wide->CastTo(DType::kFloat), "add the map 'f32' if that is meant");
  ASSERT_OK(wide->ForceCast(DType::kFloat));
  EXPECT_EQ(Gather(*wide, {0})->values<float>()[0], 3.0f);
}

TEST(ColumnTest, NamesFileAndRowOfABadElement) {
  const auto column =
      MakeColumn("[1:],onehot=3", {Tensor::FromVector<uint8_t>({2}, {0, 1}), Tensor::FromVector<uint8_t>({2}, {2, 3})});
  EXPECT_OK(Gather(*column, {0, 1}));
  EXPECT_DATA_ERROR(Gather(*column, {0, 2}), "'x' from 'file1', row 1: element 0: map 'onehot=3'");
}

TEST(ColumnTest, ConstantsRepeatAlongALeadingOne) {
  const auto repeated = MakeConstantColumn("p", Tensor::FromVector<int32_t>({1, 2}, {5, 6}), true);
  ASSERT_OK(repeated);
  ASSERT_OK((*repeated)->CastTo(DType::kInt64));
  EXPECT_TRUE(Gather(**repeated, {7, 9})->Identical(Tensor::FromVector<int64_t>({2, 2}, {5, 6, 5, 6})));
  EXPECT_EQ(Gather(**repeated, {})->shape(), (Shape{0, 2}));
  const auto fixed = MakeConstantColumn("p", Tensor::Scalar<float>(2), false);
  ASSERT_OK(fixed);
  EXPECT_EQ(Gather(**fixed, {1, 2, 3})->shape(), Shape{});
  EXPECT_DATA_ERROR((*fixed)->CastTo(DType::kInt64), "a cast may change values");
  EXPECT_DATA_ERROR(MakeConstantColumn("p", Tensor::FromVector<int32_t>({2}, {5, 6}), true),
                    "needs a leading axis of 1");
}

TEST(DatasetTest, CountsMustAgree) {
  std::vector<std::unique_ptr<Column>> columns;
  columns.push_back(MakeColumn("", {Tensor::FromVector<int32_t>({3}, {1, 2, 3})}));
  columns.push_back(std::move(MakeConstantColumn("p", Tensor::Scalar<float>(2), false)).value());
  auto dataset = Dataset::Create(std::move(columns));
  ASSERT_OK(dataset);
  EXPECT_EQ(dataset->samples(), 3);
  EXPECT_EQ(dataset->Find("x")->samples(), 3);
  EXPECT_EQ(dataset->Find("y"), nullptr);

  std::vector<ArrayPiece> other;
  other.push_back({"file", Array(Tensor::FromVector<int32_t>({2}, {1, 2}))});
  columns.clear();
  columns.push_back(MakeColumn("", {Tensor::FromVector<int32_t>({3}, {1, 2, 3})}));
  columns.push_back(std::move(MakeArrayColumn("y", std::move(other), Mapping())).value());
  EXPECT_DATA_ERROR(Dataset::Create(std::move(columns)), "'x' has 3 samples (axis 0), but 'y' has 2");

  columns.clear();
  columns.push_back(MakeColumn("", {Tensor::FromVector<int32_t>({3}, {1, 2, 3})}));
  columns.push_back(MakeColumn("", {Tensor::FromVector<int32_t>({3}, {1, 2, 3})}));
  EXPECT_USAGE_ERROR(Dataset::Create(std::move(columns)), "data for 'x' is given twice");
  EXPECT_DATA_ERROR(Dataset::Create({}), "no data with samples");
}

}  // namespace
}  // namespace onnxtrain
