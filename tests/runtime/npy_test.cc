// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/npy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/file_system.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

constexpr DType kNumericTypes[] = {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kUint8,
                                   DType::kInt8,  DType::kUint16, DType::kInt16,   DType::kUint32,
                                   DType::kInt32, DType::kUint64, DType::kInt64,   DType::kBool};

std::string DataFile(const std::string& name) { return std::string(ONNXTRAIN_TEST_DATA_DIR) + "/arrays/" + name; }

Tensor Counting(DType dtype, Shape shape) {
  Tensor numbers(TensorType{DType::kInt64, std::move(shape)});
  int64_t next = 0;
  for (int64_t& value : numbers.values<int64_t>()) value = 7 * next++;
  return numbers.CastTo(dtype);
}

StatusOr<Tensor> Parse(const std::vector<std::byte>& bytes, DType void_type = DType::kUndefined) {
  return ParseNpy(bytes, "x.npy", void_type);
}

std::vector<std::byte> WithHeader(const std::string& dict, size_t data_bytes) {
  std::string text = dict + "\n";
  std::string file = std::string("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(text.size());
  file += '\0';
  return ToBytes(file + text + std::string(data_bytes, '\0'));
}

TEST(NpyTest, RoundTripsEveryTypeAndShape) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  for (DType dtype : kNumericTypes) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{3, 0, 2}, Shape{5, 3}, Shape{2, 1, 3, 1}}) {
      const Tensor tensor = Counting(dtype, shape);
      ASSERT_OK(WriteNpy(files, folder.Path("x.npy"), tensor));
      const auto read = Parse(ReadBytes(folder.Path("x.npy")));
      ASSERT_OK(read);
      EXPECT_TRUE(read->Identical(tensor)) << ToString(tensor.type());
    }
  }
}

TEST(NpyTest, ElementsStartAtAMultipleOf64) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{1000000, 1000000, 7}, Shape(32, 1)}) {
    EXPECT_EQ(NpyHeaderFor({DType::kInt64, shape}).size() % 64, 0u);
  }
}

TEST(NpyTest, ReadsWhatNumpyWrote) {
  const std::vector<std::pair<std::string, Tensor>> expected = {{"v1.npy", Counting(DType::kFloat, {2, 3})},
                                                                {"v2.npy", Counting(DType::kInt64, {4})},
                                                                {"v3.npy", Counting(DType::kInt16, {3, 1})}};
  for (const auto& [name, tensor] : expected) {
    const auto read = Parse(ReadBytes(DataFile(name)));
    ASSERT_OK(read);
    EXPECT_TRUE(read->Identical(tensor)) << name;
  }
}

TEST(NpyTest, RefusesTypesWithoutATensor) {
  EXPECT_DATA_ERROR(Parse(ReadBytes(DataFile("objects.npy"))), "Python objects are not supported");
  EXPECT_DATA_ERROR(Parse(ReadBytes(DataFile("strings.npy"))), "element type '<U2' is not supported");
  EXPECT_DATA_ERROR(Parse(ReadBytes(DataFile("complex.npy"))), "element type '<c8' is not supported");
  EXPECT_DATA_ERROR(Parse(ReadBytes(DataFile("structured.npy"))), "structured types are not supported");
}

TEST(NpyTest, UntypedSixteenBitsNeedAnExplicitType) {
  const auto bytes = ReadBytes(DataFile("void2.npy"));
  EXPECT_DATA_ERROR(Parse(bytes), "has no element type (bfloat16");
  const auto read = Parse(bytes, DType::kBfloat16);
  ASSERT_OK(read);
  EXPECT_EQ(read->DoubleAt(0), 1.0);
  EXPECT_EQ(read->DoubleAt(1), -2.0);
  const TemporaryFolder folder;
  PosixFileSystem files;
  ASSERT_OK(WriteNpy(files, folder.Path("b.npy"), *read));
  EXPECT_TRUE(Parse(ReadBytes(folder.Path("b.npy")), DType::kBfloat16)->Identical(*read));
}

TEST(NpyTest, NamesTheByteOfWhatIsWrong) {
  EXPECT_DATA_ERROR(Parse(ToBytes("PK")), "'x.npy', byte 0: not an npy file");
  EXPECT_DATA_ERROR(Parse(ToBytes(std::string("\x93NUMPY\x09\x00\x10\x00", 10))), "byte 6: npy version 9");
  EXPECT_DATA_ERROR(Parse(WithHeader("[1]", 0)), "byte 10: the npy header is not a Python dict");
  EXPECT_DATA_ERROR(Parse(WithHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 7)),
                    "float[2] needs 8 bytes, found 7");
  EXPECT_DATA_ERROR(Parse(WithHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 9)),
                    "float[2] needs 8 bytes, found 9");
  EXPECT_DATA_ERROR(Parse(WithHeader("{'descr': '<f4', 'fortran_order': False}", 0)), "needs descr, fortran_order");
  EXPECT_DATA_ERROR(Parse(WithHeader("{'descr': '<f4', 'descr': '<f4'}", 0)), "'descr' is given twice");
  EXPECT_DATA_ERROR(Parse(WithHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 0)), "a dimension");
  EXPECT_DATA_ERROR(Parse(WithHeader("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)} ", 0)), "needs 1 bytes");
}

TEST(NpyTest, HugeShapesAreRefusedBeforeAllocation) {
  const std::string start = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  EXPECT_DATA_ERROR(Parse(WithHeader(start + "4611686018427387904, 4)}", 0)), "the shape is too large");
  EXPECT_DATA_ERROR(Parse(WithHeader(start + "0, 4611686018427387904, 4)}", 0)), "the shape is too large");
  EXPECT_DATA_ERROR(Parse(WithHeader(start + "99999999999999999999,)}", 0)), "a dimension is too large");
  EXPECT_DATA_ERROR(Parse(WithHeader(start + "1000000000000,)}", 0)), "needs 4000000000000 bytes, found 0");
}

TEST(NpyTest, BoolsAreZeroOrOne) {
  auto bytes = WithHeader("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", 3);
  bytes.back() = std::byte{2};
  EXPECT_DATA_ERROR(Parse(bytes), "a bool is 0 or 1, found 2");
}

}  // namespace
}  // namespace onnxtrain
