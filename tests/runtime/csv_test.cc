// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/csv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

StatusOr<Tensor> Parse(const std::string& text, const std::string& columns = "") {
  return ParseCsv(ToBytes(text), "t.csv", columns);
}

TEST(CsvTest, WholeNumbersAreIntegers) {
  EXPECT_TRUE(Parse("1,2\n3,4\n")->Identical(Tensor::FromVector<int64_t>({2, 2}, {1, 2, 3, 4})));
  EXPECT_TRUE(Parse("1,2.5\n3,4")->Identical(Tensor::FromVector<double>({2, 2}, {1, 2.5, 3, 4})));
  EXPECT_TRUE(Parse("7")->Identical(Tensor::FromVector<int64_t>({1, 1}, {7})));
}

TEST(CsvTest, ColumnsByNameIndexAndRange) {
  const std::string table = "x;y;label\n0.5;1;3\n1.5;2;4\n";
  EXPECT_TRUE(Parse(table, "label")->Identical(Tensor::FromVector<int64_t>({2}, {3, 4})));
  EXPECT_TRUE(Parse(table, "0")->Identical(Tensor::FromVector<double>({2}, {0.5, 1.5})));
  EXPECT_TRUE(Parse(table, "label;y")->Identical(Tensor::FromVector<int64_t>({2, 2}, {3, 1, 4, 2})));
  EXPECT_TRUE(Parse(table, "0:2")->Identical(Tensor::FromVector<double>({2, 2}, {0.5, 1, 1.5, 2})));
  EXPECT_DATA_ERROR(Parse(table, "z"), "'t.csv' has no column 'z'; it has: x, y, label");
  EXPECT_EQ(*CsvNames(ToBytes(table), "t.csv"), (std::vector<std::string>{"x", "y", "label"}));
  EXPECT_EQ(*CsvNames(ToBytes("1\t2"), "t.csv"), (std::vector<std::string>{"0", "1"}));
}

TEST(CsvTest, QuotesSpacesAndLineEnds) {
  const auto read = Parse("\xef\xbb\xbf\"a,\"\"b\"\"\",c\r\n\"1\", +2 \r\n\r\n-3,4e2\r\n");
  ASSERT_OK(read);
  EXPECT_TRUE(read->Identical(Tensor::FromVector<double>({2, 2}, {1, 2, -3, 400})));
  EXPECT_EQ((*CsvNames(ToBytes("\"a,\"\"b\"\"\",c\n1,2"), "t"))[0], "a,\"b\"");
}

TEST(CsvTest, NamesWithoutRows) {
  const auto read = Parse("a,b\n");
  ASSERT_OK(read);
  EXPECT_EQ(read->shape(), (Shape{0, 2}));
}

TEST(CsvTest, NamesLineColumnAndByte) {
  EXPECT_DATA_ERROR(Parse(""), "the table is empty");
  EXPECT_DATA_ERROR(Parse("a,b\n1,\n"), "byte 6: line 2, column 'b': a number is expected, found ''");
  EXPECT_DATA_ERROR(Parse("1,2\n3,x\n"), "byte 6: line 2, column '1': a number is expected, found 'x'");
  EXPECT_DATA_ERROR(Parse("1,2\n3\n"), "byte 4: line 2: expected 2 cells, found 1");
  EXPECT_DATA_ERROR(Parse("1,\"2\n"), "byte 2: line 1: a quoted cell does not end");
  EXPECT_DATA_ERROR(Parse("1,\"2\"3\n"), "byte 5: line 1: text after a quoted cell");
}

}  // namespace
}  // namespace onnxtrain
