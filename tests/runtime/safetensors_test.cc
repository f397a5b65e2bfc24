// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/safetensors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/data/byte_reader.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

std::vector<NamedTensor> Tensors() {
  std::vector<NamedTensor> tensors;
  for (DType dtype :
       {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBfloat16, DType::kUint8, DType::kInt8, DType::kUint16,
        DType::kInt16, DType::kUint32, DType::kInt32, DType::kUint64, DType::kInt64, DType::kBool}) {
    const std::string name = "type/" + std::string(NameOf(dtype)) + "\xc3\xa9\"";
    tensors.emplace_back(name, Tensor::FromVector<int64_t>({3, 1}, {0, 1, 1}).CastTo(dtype));
  }
  tensors.emplace_back("", Tensor::Scalar<float>(-1.0f));
  tensors.emplace_back("empty", Tensor::FromVector<float>({0, 5}, {}));
  return tensors;
}

StatusOr<std::vector<NamedTensor>> Parse(const std::string& json, size_t data_bytes) {
  std::string file;
  AppendLittle(file, json.size(), 8);
  return ParseSafetensors(ToBytes(file + json + std::string(data_bytes, '\0')), "x");
}

TEST(SafetensorsTest, RoundTrips) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  const std::string path = folder.Path("x.safetensors");
  ASSERT_OK(WriteSafetensors(files, path, Tensors(), {{"format", "pt"}}));
  const auto read = ReadSafetensors(path);
  ASSERT_OK(read);
  const std::vector<NamedTensor> expected = Tensors();
  ASSERT_EQ(read->size(), expected.size());
  for (size_t i = 0; i < read->size(); ++i) {
    const auto& [name, tensor] = expected[i];
    EXPECT_EQ((*read)[i].first, name);
    EXPECT_TRUE((*read)[i].second.Identical(tensor)) << name;
    auto file = FileContents::Open(path);
    ASSERT_OK(file);
    EXPECT_TRUE(OpenSafetensorsArray(std::move(file).value(), name)->ToTensor().Identical(tensor)) << name;
  }
  EXPECT_EQ(ParseSafetensorsHeader(ReadBytes(path), path)->metadata.at("format"), "pt");
  EXPECT_EQ(ParseSafetensorsHeader(ReadBytes(path), path)->entries[0].offset % 64, 0u);
}

TEST(SafetensorsTest, NoTensorsAtAll) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  ASSERT_OK(WriteSafetensors(files, folder.Path("x"), {}));
  const auto read = ReadSafetensors(folder.Path("x"));
  ASSERT_OK(read);
  EXPECT_TRUE(read->empty());
}

TEST(SafetensorsTest, ReadsWhatPythonWrote) {
  const auto read = ReadSafetensors(std::string(ONNXTRAIN_TEST_DATA_DIR) + "/arrays/made_by_python.safetensors");
  ASSERT_OK(read);
  EXPECT_EQ(read->size(), 5u);
  for (const auto& [name, tensor] : *read) {
    for (int64_t i = 0; i < tensor.elements(); ++i) EXPECT_EQ(tensor.IntAt(i), name == "flag" ? i % 2 : 7 * i) << name;
  }
}

TEST(SafetensorsTest, RefusesBrokenHeaders) {
  EXPECT_DATA_ERROR(Parse("[]", 0), "byte 8: the header does not start with '{'");
  EXPECT_DATA_ERROR(Parse("{\"a\":1}", 0), "a number is not expected as the value of 'a'");
  EXPECT_DATA_ERROR(Parse("{\"a\":{}}", 0), "tensor 'a': dtype, shape and data_offsets are needed");
  EXPECT_DATA_ERROR(Parse("{\"a\":", 0), "the header is not valid JSON");
  EXPECT_DATA_ERROR(Parse("{\"a\":{\"b\":[[1]]}}", 0), "unknown key 'b' in tensor 'a'");
  EXPECT_DATA_ERROR(Parse(std::string(100000, '['), 0), "does not start with '{'");
  EXPECT_DATA_ERROR(Parse("{\"a\":" + std::string(100000, '['), 0), "an array is not expected");
  const std::string entry = "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}";
  EXPECT_DATA_ERROR(Parse("{\"a\":" + entry + ",\"a\":" + entry + "}", 4), "tensor 'a' occurs twice");
  EXPECT_DATA_ERROR(Parse("{\"a\":" + entry + ",\"b\":" + entry + "}", 4), "overlap or leave a hole");
  EXPECT_DATA_ERROR(Parse("{\"a\":" + entry + "}", 3), "the file may be cut off");
  EXPECT_DATA_ERROR(Parse("{\"a\":" + entry + "}", 5), "1 bytes after the last tensor");
  EXPECT_DATA_ERROR(Parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4),
                    "float[2] needs 8 bytes, found 4");
  EXPECT_DATA_ERROR(Parse("{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4),
                    "element type F8_E4M3 is not supported");
  EXPECT_DATA_ERROR(Parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,4]}}", 4),
                    "the shape is too large");
  EXPECT_DATA_ERROR(Parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4), "a negative number");
  EXPECT_DATA_ERROR(ParseSafetensors(ToBytes(std::string(8, '\xff')), "x"), "not a safetensors file, or cut off");
}

TEST(SafetensorsTest, NamesAreUtf8AndUnique) {
  const Tensor tensor = Tensor::Scalar<float>(1);
  const std::vector<std::pair<std::string, const Tensor*>> twice = {{"a", &tensor}, {"a", &tensor}};
  EXPECT_FALSE(SafetensorsHeaderFor(twice, {}).ok());
  const std::vector<std::pair<std::string, const Tensor*>> latin1 = {{"\xe9", &tensor}};
  EXPECT_FALSE(SafetensorsHeaderFor(latin1, {}).ok());
}

}  // namespace
}  // namespace onnxtrain
