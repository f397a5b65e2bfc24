// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/array_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/data/npy.h"
#include "runtime/data/npz.h"
#include "runtime/data/safetensors.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

class ArrayFileTest : public ::testing::Test {
 protected:
  std::string Npy(const std::string& name, const Tensor& tensor) {
    EXPECT_OK(WriteNpy(files_, folder_.Path(name), tensor));
    return folder_.Path(name);
  }

  TemporaryFolder folder_;
  PosixFileSystem files_;
  const Tensor numbers_ = Tensor::FromVector<float>({2, 2}, {1, 2, 3, 4});
};

TEST_F(ArrayFileTest, KnowsFormatsByContentElseByEnding) {
  EXPECT_TRUE(ReadArrayFile(Npy("a.npy", numbers_))->Identical(numbers_));
  EXPECT_TRUE(ReadArrayFile(Npy("without_ending", numbers_))->Identical(numbers_));
  EXPECT_EQ(ReadArrayFile(folder_.Write("t.csv", "1,2\n3,4"))->shape(), (Shape{2, 2}));
  EXPECT_EQ(ReadArrayFile(folder_.Write("t.TSV", "1\t2\n3\t4") + "#1")->IntAt(1), 4);
  EXPECT_EQ(ReadArrayFile(folder_.Write("t.bin", "abcd"))->type(), (TensorType{DType::kUint16, {2}}));
  EXPECT_EQ(ReadArrayFile(folder_.Write("i", std::string("\0\0\x08\1\0\0\0\1x", 9)))->type(),
            (TensorType{DType::kUint8, {1}}));
  EXPECT_DATA_ERROR(ReadArrayFile(folder_.Write("x", "hello")), "not a known array format");
  EXPECT_DATA_ERROR(ReadArrayFile(folder_.Write("x.npy", "hello")), "byte 0: not an npy file");
  EXPECT_DATA_ERROR(ReadArrayFile(folder_.Path("missing.npy")), "No such file");
  EXPECT_DATA_ERROR(ReadArrayFile(folder_.Path("a.npy") + "#x"), "holds a single array");
}

TEST_F(ArrayFileTest, PicksEntries) {
  std::vector<NamedTensor> tensors;
  tensors.emplace_back("a#b", numbers_);
  tensors.emplace_back("c", Tensor::Scalar<double>(3));
  ASSERT_OK(WriteNpz(files_, folder_.Path("x.npz"), tensors));
  ASSERT_OK(WriteSafetensors(files_, folder_.Path("x.safetensors"), tensors));
  for (const std::string ending : {"npz", "safetensors"}) {
    const std::string path = folder_.Path("x." + ending);
    EXPECT_TRUE(ReadArrayFile(path + "#a#b")->Identical(numbers_));
    EXPECT_EQ(ReadArrayFile(path + "#c")->DoubleAt(0), 3);
    EXPECT_DATA_ERROR(ReadArrayFile(path), "holds 2 arrays; pick one with");
    EXPECT_DATA_ERROR(ReadArrayFile(path + "#d"), "it has: a#b, c");
    EXPECT_EQ(*ListArrayFile(path), (std::vector<std::string>{"a#b", "c"}));
    EXPECT_EQ(ReadNamedArrays(path)->size(), 2u);
  }
  EXPECT_DATA_ERROR(ReadNamedArrays(Npy("a.npy", numbers_)), "does not name its arrays");
}

TEST_F(ArrayFileTest, ABinThatMayBeCifarAsks) {
  const std::string path = folder_.Write("data.bin", std::string(3073 * 2, '\1'));
  EXPECT_DATA_ERROR(ReadArrayFile(path), "images, labels, tokens");
  EXPECT_EQ(ReadArrayFile(path + "#images")->shape(), (Shape{2, 3, 32, 32}));
  EXPECT_EQ(ReadArrayFile(path + "#labels")->shape(), (Shape{2}));
  EXPECT_EQ(ReadArrayFile(path + "#tokens")->shape(), (Shape{3073}));
}

TEST_F(ArrayFileTest, FoldersOfInputs) {
  for (int i : {10, 2, 0, 1, 3, 4, 5, 6, 7, 8, 9}) folder_.Write("set/input_" + std::to_string(i) + ".pb", "x");
  folder_.Write("set/output_0.pb", "y");
  const std::string folder = folder_.Path("set");
  ArrayFileOptions options;
  options.tensor_proto_reader = [](const std::string& path) -> StatusOr<Tensor> {
    return Tensor::Scalar<int64_t>(path.ends_with("input_10.pb") ? 10 : 0);
  };
  const auto arrays = ReadNamedArrays(folder, options);
  ASSERT_OK(arrays);
  ASSERT_EQ(arrays->size(), 11u);
  EXPECT_EQ((*arrays)[10].first, "input_10");
  EXPECT_EQ((*arrays)[10].second.IntAt(0), 10);
  EXPECT_EQ(ReadArrayFile(folder + "#input_10", options)->IntAt(0), 10);
  EXPECT_EQ(ReadArrayFile(folder + "/input_10.pb", options)->IntAt(0), 10);
  EXPECT_DATA_ERROR(ReadArrayFile(folder, options), "pick an array of folder");
  EXPECT_DATA_ERROR(ReadArrayFile(folder + "/input_10.pb"), "not readable here");
  folder_.Write("gap/input_1.pb", "x");
  EXPECT_DATA_ERROR(ReadNamedArrays(folder_.Path("gap"), options), "has no input_0.pb, but input_1.pb");
}

// Larger than what is copied into memory when opened.
TEST_F(ArrayFileTest, LargeFilesAreMapped) {
  Tensor large(TensorType{DType::kFloat, {700, 513}});
  float next = 0;
  for (float& value : large.values<float>()) value = next++;
  const auto array = OpenArrayFile(Npy("large.npy", large));
  ASSERT_OK(array);
  EXPECT_TRUE(array->ToTensor().Identical(large));
  EXPECT_EQ(array->rows(), 700);
  EXPECT_EQ(array->row_bytes(), 513 * sizeof(float));
  float first = 0;
  std::memcpy(&first, array->row(699), sizeof(first));
  EXPECT_EQ(first, 699.0f * 513.0f);
}

}  // namespace
}  // namespace onnxtrain
