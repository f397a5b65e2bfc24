// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/npz.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/data/file_contents.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

std::string DataFile(const std::string& name) { return std::string(ONNXTRAIN_TEST_DATA_DIR) + "/arrays/" + name; }

std::vector<NamedTensor> Tensors() {
  std::vector<NamedTensor> tensors;
  tensors.emplace_back("output/logits", Tensor::FromVector<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  tensors.emplace_back("grad/onnx::MatMul_5", Tensor::FromVector<double>({1}, {-0.5}));
  tensors.emplace_back("empty", Tensor::FromVector<int32_t>({0, 7}, {}));
  tensors.emplace_back("loss", Tensor::Scalar<double>(2.25));
  tensors.emplace_back("mask", Tensor::Scalar<bool>(true));
  return tensors;
}

void ExpectEqual(const std::vector<NamedTensor>& actual, const std::vector<NamedTensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].first, expected[i].first);
    EXPECT_TRUE(actual[i].second.Identical(expected[i].second)) << actual[i].first;
  }
}

TEST(NpzTest, RoundTripsWithAndWithoutZip64) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  for (const bool always_zip64 : {false, true}) {
    const std::string path = folder.Path(always_zip64 ? "a.npz" : "b.npz");
    ASSERT_OK(WriteNpz(files, path, Tensors(), {always_zip64}));
    const auto read = ReadNpz(path);
    ASSERT_OK(read);
    ExpectEqual(*read, Tensors());
  }
}

TEST(NpzTest, AnArchiveWithoutEntriesIsFine) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  ASSERT_OK(WriteNpz(files, folder.Path("x.npz"), std::vector<NamedTensor>()));
  const auto read = ReadNpz(folder.Path("x.npz"));
  ASSERT_OK(read);
  EXPECT_TRUE(read->empty());
}

TEST(NpzTest, EqualTensorsGiveEqualBytes) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  ASSERT_OK(WriteNpz(files, folder.Path("a.npz"), Tensors()));
  ASSERT_OK(WriteNpz(files, folder.Path("b.npz"), Tensors()));
  EXPECT_EQ(ReadText(folder.Path("a.npz")), ReadText(folder.Path("b.npz")));
}

// NumPy's own files: stored with zip64 headers, and deflated; every element type, big endian, Fortran order.
TEST(NpzTest, ReadsWhatNumpyWrote) {
  for (const std::string name : {"stored.npz", "deflated.npz"}) {
    const auto read = ReadNpz(DataFile(name));
    ASSERT_OK(read);
    EXPECT_EQ(read->size(), 23u);
    for (const auto& [array, tensor] : *read) {
      if (array == "scalar") {
        EXPECT_TRUE(tensor.Identical(Tensor::Scalar<float>(5.5f)));
      } else if (array == "empty") {
        EXPECT_EQ(tensor.shape(), (Shape{0, 4}));
      } else if (array == "one") {
        EXPECT_TRUE(tensor.Identical(Tensor::FromVector<int32_t>({1}, {7})));
      } else {
        const bool is_bool = tensor.dtype() == DType::kBool;
        for (int64_t i = 0; i < tensor.elements(); ++i) {
          EXPECT_EQ(tensor.IntAt(i), is_bool ? i % 2 : 7 * i) << name << " " << array << " " << i;
        }
      }
    }
  }
}

TEST(NpzTest, StoredArraysStayInTheFile) {
  for (const std::string name : {"stored.npz", "deflated.npz"}) {
    const auto all = ReadNpz(DataFile(name));
    ASSERT_OK(all);
    for (const auto& [array, tensor] : *all) {
      auto file = FileContents::Open(DataFile(name));
      ASSERT_OK(file);
      const auto opened = OpenNpzArray(std::move(file).value(), array);
      ASSERT_OK(opened);
      EXPECT_TRUE(opened->ToTensor().Identical(tensor)) << array;
    }
  }
}

TEST(NpzTest, AMissingArrayListsThoseThereAre) {
  auto file = FileContents::Open(DataFile("stored.npz"));
  ASSERT_OK(file);
  EXPECT_DATA_ERROR(OpenNpzArray(std::move(file).value(), "nothing"), "has no array 'nothing'; it has: le_f2, le_f4");
}

TEST(NpzTest, ChangedDataIsFoundByTheChecksum) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  ASSERT_OK(WriteNpz(files, folder.Path("x.npz"), Tensors()));
  std::string content = ReadText(folder.Path("x.npz"));
  const float three = 3.0f;
  const size_t at = content.find(std::string(reinterpret_cast<const char*>(&three), 4));
  ASSERT_NE(at, std::string::npos);
  content[at] ^= 1;
  EXPECT_DATA_ERROR(ParseNpz(ToBytes(content), "x.npz"), "the checksum of entry 'output/logits.npy' is wrong");
}

TEST(NpzTest, TheSameNameTwiceIsRefused) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  std::vector<NamedTensor> tensors = Tensors();
  tensors.push_back(tensors[0]);
  EXPECT_FALSE(WriteNpz(files, folder.Path("x.npz"), tensors).ok());
  tensors.back().first = "output/logitz";
  ASSERT_OK(WriteNpz(files, folder.Path("x.npz"), tensors));
  std::string content = ReadText(folder.Path("x.npz"));
  for (size_t at = content.find("logitz"); at != std::string::npos; at = content.find("logitz")) content[at + 5] = 's';
  EXPECT_DATA_ERROR(ParseNpz(ToBytes(content), "x.npz"), "two entries have the name 'output/logits.npy'");
}

TEST(NpzTest, NotAZip) {
  EXPECT_DATA_ERROR(ParseNpz(ToBytes("hello"), "x.npz"), "too short for a zip archive");
  EXPECT_DATA_ERROR(ParseNpz(ToBytes(std::string(100, 'x')), "x.npz"), "no end of a zip archive");
  EXPECT_DATA_ERROR(ReadNpz("/nowhere/x.npz"), "cannot read '/nowhere/x.npz'");
}

}  // namespace
}  // namespace onnxtrain
