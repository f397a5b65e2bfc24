// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/idx.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/data/byte_reader.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

std::string Digits(const std::string& name) { return std::string(ONNXTRAIN_TEST_DATA_DIR) + "/mnist10k/" + name; }

std::string Header(char type, const std::vector<uint32_t>& dims) {
  std::string header = {0, 0, type, static_cast<char>(dims.size())};
  for (uint32_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) header += static_cast<char>((dim >> shift) & 0xff);
  }
  return header;
}

std::string BigEndian(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.data(), tensor.data() + tensor.bytes());
  SwapByteOrder(bytes, SizeOf(tensor.dtype()));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(IdxTest, ReadsEveryType) {
  const std::vector<std::pair<char, DType>> types = {{0x08, DType::kUint8}, {0x09, DType::kInt8},
                                                     {0x0b, DType::kInt16}, {0x0c, DType::kInt32},
                                                     {0x0d, DType::kFloat}, {0x0e, DType::kDouble}};
  const TemporaryFolder folder;
  for (const auto& [code, dtype] : types) {
    const Tensor expected = Tensor::FromVector<int32_t>({3, 2}, {1, 2, 3, 100, 5, 127}).CastTo(dtype);
    const std::string content = Header(code, {3, 2}) + BigEndian(expected);
    const auto read = ParseIdx(ToBytes(content), "x.idx");
    ASSERT_OK(read);
    EXPECT_TRUE(read->Identical(expected)) << ToString(expected.type());
    auto file = FileContents::Open(folder.Write("x", content));
    ASSERT_OK(file);
    const auto opened = OpenIdx(std::move(file).value());
    ASSERT_OK(opened);
    EXPECT_TRUE(opened->ToTensor().Identical(expected));
  }
}

TEST(IdxTest, SizesZeroAndOne) {
  EXPECT_EQ(ParseIdx(ToBytes(Header(8, {0})), "x")->shape(), (Shape{0}));
  EXPECT_EQ(ParseIdx(ToBytes(Header(8, {0, 28, 28})), "x")->shape(), (Shape{0, 28, 28}));
  EXPECT_EQ(ParseIdx(ToBytes(Header(8, {1}) + "\x05"), "x")->IntAt(0), 5);
  EXPECT_EQ(ParseIdx(ToBytes(Header(8, {}) + "\x05"), "x")->shape(), Shape{});
}

TEST(IdxTest, ReadsCompressedDigits) {
  const auto images = ParseIdx(ReadBytes(Digits("test-images.idx3-ubyte.gz")), "images");
  const auto labels = ParseIdx(ReadBytes(Digits("test-labels.idx1-ubyte.gz")), "labels");
  ASSERT_OK(images);
  ASSERT_OK(labels);
  EXPECT_EQ(images->type(), (TensorType{DType::kUint8, {1000, 28, 28}}));
  EXPECT_EQ(labels->type(), (TensorType{DType::kUint8, {1000}}));
  for (uint8_t label : labels->values<uint8_t>()) EXPECT_LT(label, 10);
  EXPECT_EQ(images->IntAt(0), 0);  // the corner of a digit is empty
}

TEST(IdxTest, NamesTheByteOfWhatIsWrong) {
  EXPECT_DATA_ERROR(ParseIdx(ToBytes("PK\3\4"), "x"), "'x', byte 0: not an IDX file");
  EXPECT_DATA_ERROR(ParseIdx(ToBytes(Header(7, {1}) + "a"), "x"), "byte 2: unknown IDX element type 7");
  EXPECT_DATA_ERROR(ParseIdx(ToBytes(Header(8, {3}) + "ab"), "x"), "byte 8: uint8[3] needs 3 bytes, found 2");
  EXPECT_DATA_ERROR(ParseIdx(ToBytes(Header(8, {1}) + "ab"), "x"), "needs 1 bytes, found 2");
  EXPECT_DATA_ERROR(ParseIdx(ToBytes(Header(14, {4000000000u, 4000000000u, 4000000000u})), "x"), "shape is too large");
}

TEST(IdxTest, BrokenCompressionIsFound) {
  std::vector<std::byte> bytes = ReadBytes(Digits("test-labels.idx1-ubyte.gz"));
  std::vector<std::byte> changed = bytes;
  changed[changed.size() / 2] ^= std::byte{0x10};
  EXPECT_DATA_ERROR(ParseIdx(changed, "x"), "compressed data");
  bytes.push_back(std::byte{0});
  EXPECT_DATA_ERROR(ParseIdx(bytes, "x"), "compressed data");
}

}  // namespace
}  // namespace onnxtrain
