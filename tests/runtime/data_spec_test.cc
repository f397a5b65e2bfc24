// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/data_spec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/data/npy.h"
#include "runtime/data/npz.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

class DataSpecTest : public ::testing::Test {
 protected:
  DataSpecTest() {
    std::vector<NamedTensor> tensors;
    tensors.emplace_back("x", Tensor::FromVector<float>({3}, {1, 2, 3}));
    tensors.emplace_back("onnx::MatMul_5", Tensor::FromVector<int64_t>({3}, {4, 5, 6}));
    EXPECT_OK(WriteNpz(files_, npz_, tensors));
    EXPECT_OK(WriteNpy(files_, npy_, Tensor::FromVector<uint8_t>({4}, {1, 2, 3, 4})));
  }

  TemporaryFolder folder_;
  PosixFileSystem files_;
  std::string npz_ = folder_.Path("a.npz");
  std::string npy_ = folder_.Path("b.npy");
};

TEST_F(DataSpecTest, TakesNameFileAndMapApart) {
  auto spec = ParseDataSpec("x=" + npy_);
  ASSERT_OK(spec);
  EXPECT_EQ(spec->name, "x");
  EXPECT_EQ(spec->path, npy_);
  EXPECT_TRUE(spec->mapping.empty());
  spec = ParseDataSpec("x=" + npy_ + ":[1:3],f32,/255");
  ASSERT_OK(spec);
  EXPECT_EQ(spec->path, npy_);
  EXPECT_EQ(spec->mapping.steps().size(), 3u);
  spec = ParseDataSpec("onnx::in=" + npz_ + "#onnx::MatMul_5:f32");
  ASSERT_OK(spec);
  EXPECT_EQ(spec->name, "onnx::in");
  EXPECT_EQ(spec->path, npz_ + "#onnx::MatMul_5");
  EXPECT_EQ(spec->mapping.steps().size(), 1u);
  spec = ParseDataSpec("x=" + npz_ + "#onnx::MatMul_5");
  ASSERT_OK(spec);
  EXPECT_EQ(spec->path, npz_ + "#onnx::MatMul_5");
  EXPECT_TRUE(spec->mapping.empty());
}

TEST_F(DataSpecTest, FilesMayHoldSignsOfTheSyntax) {
  const std::string odd = folder_.Path("k=v:f32.npy");
  ASSERT_OK(WriteNpy(files_, odd, Tensor::FromVector<float>({1}, {5})));
  auto spec = ParseDataSpec("x=" + odd + ":*2");
  ASSERT_OK(spec);
  EXPECT_EQ(spec->path, odd);
  const auto feeds = ReadFeeds(*spec, {});
  ASSERT_OK(feeds);
  EXPECT_EQ((*feeds)[0].second.DoubleAt(0), 10.0);
}

TEST_F(DataSpecTest, RefusesWhatIsNoSpec) {
  EXPECT_USAGE_ERROR(ParseDataSpec("x=" + npy_ + ":f33"), "map 'f33': unknown");
  EXPECT_USAGE_ERROR(ParseDataSpec("=" + npy_), "expected NAME=FILE");
  EXPECT_USAGE_ERROR(ParseDataSpec("x="), "expected NAME=FILE");
  EXPECT_USAGE_ERROR(ParseDataSpec(npz_ + ":f32"), "expected NAME=FILE[:MAP], or FILE.npz");
}

TEST_F(DataSpecTest, AFileWithoutANameGivesItsArrays) {
  const auto spec = ParseDataSpec(npz_);
  ASSERT_OK(spec);
  const auto columns = OpenColumns(*spec);
  ASSERT_OK(columns);
  ASSERT_EQ(columns->size(), 2u);
  EXPECT_EQ((*columns)[1]->name(), "onnx::MatMul_5");
  EXPECT_USAGE_ERROR(OpenColumns(*ParseDataSpec(npy_)), "does not name its arrays");
  EXPECT_DATA_ERROR(OpenColumns(*ParseDataSpec("x=" + folder_.Path("missing.npy"))), "No such file");
  EXPECT_DATA_ERROR(ReadFeeds(*ParseDataSpec(folder_.Path("missing.npz")), {}), "No such file");
}

TEST_F(DataSpecTest, APatternGivesTheRowsOfAllFiles) {
  ASSERT_OK(WriteNpy(files_, folder_.Path("part_2.npy"), Tensor::FromVector<uint8_t>({2}, {7, 8})));
  ASSERT_OK(WriteNpy(files_, folder_.Path("part_1.npy"), Tensor::FromVector<uint8_t>({1}, {6})));
  const auto columns = OpenColumns(*ParseDataSpec("x=" + folder_.Path("part_*.npy") + ":i64"));
  ASSERT_OK(columns);
  std::vector<int64_t> values(3);
  ColumnScratch scratch = (*columns)[0]->MakeScratch();
  const std::vector<int64_t> all = {0, 1, 2};
  ASSERT_OK((*columns)[0]->Gather(all, scratch, reinterpret_cast<std::byte*>(values.data())));
  EXPECT_EQ(values, (std::vector<int64_t>{6, 7, 8}));
  EXPECT_USAGE_ERROR(OpenColumns(*ParseDataSpec("x=" + folder_.Path("none_*.npy"))), "no file matches");
}

TEST_F(DataSpecTest, FeedsTakeTheTypeOfTheirInput) {
  const FeedTypes types = [](const std::string& name) {
    return name == "x" ? DType::kFloat : name == "y" ? DType::kInt64 : DType::kUndefined;
  };
  EXPECT_EQ((*ReadFeeds(*ParseDataSpec("x=[[1,2],[3,4]]"), types))[0].second.type(),
            (TensorType{DType::kFloat, {2, 2}}));
  EXPECT_EQ((*ReadFeeds(*ParseDataSpec("x=2"), types))[0].second.type(), (TensorType{DType::kFloat, {}}));
  EXPECT_EQ((*ReadFeeds(*ParseDataSpec("x=" + npy_), types))[0].second.dtype(), DType::kFloat);
  EXPECT_EQ((*ReadFeeds(*ParseDataSpec("y=" + npy_ + ":[0:2]"), types))[0].second.type(),
            (TensorType{DType::kInt64, {2}}));
  EXPECT_DATA_ERROR(ReadFeeds(*ParseDataSpec("y=" + npz_ + "#x"), types), "'y' takes int64, the feed is float[3]");
  EXPECT_DATA_ERROR(ReadFeeds(*ParseDataSpec("y=[1.5]"), types), "not a value of int64");
  const auto all = ReadFeeds(*ParseDataSpec(npz_), types);
  ASSERT_OK(all);
  EXPECT_EQ((*all)[1].second.dtype(), DType::kInt64);
}

}  // namespace
}  // namespace onnxtrain
