// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/token_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/data/byte_reader.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

// Tokens first, first + 1, ...
std::string Tokens(int64_t count, uint64_t first, size_t width) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) AppendLittle(text, first + static_cast<uint64_t>(i), width);
  return text;
}

std::string Llmc(uint32_t magic, uint32_t version, uint32_t count, const std::string& tokens) {
  std::string text;
  for (uint32_t word : {magic, version, count}) AppendLittle(text, word, 4);
  text.resize(1024);
  return text + tokens;
}

std::vector<int64_t> Window(const TokenWindows& windows, int64_t index, int shift) {
  std::vector<int64_t> tokens(static_cast<size_t>(windows.window()));
  EXPECT_OK(windows.Read(index, shift, DType::kInt64, 0, reinterpret_cast<std::byte*>(tokens.data())));
  return tokens;
}

TEST(TokenFileTest, LayoutsOfThreeKinds) {
  EXPECT_EQ(ParseTokenLayout(ToBytes(Tokens(5, 1, 2)), "x")->tokens, 5);
  const auto gpt2 = ParseTokenLayout(ToBytes(Llmc(20240520, 1, 3, Tokens(3, 9, 2))), "x");
  EXPECT_EQ(gpt2->dtype, DType::kUint16);
  EXPECT_EQ(gpt2->tokens, 3);
  const auto llama = ParseTokenLayout(ToBytes(Llmc(20240801, 7, 3, Tokens(3, 100000, 4))), "x");
  EXPECT_EQ(llama->dtype, DType::kUint32);
  EXPECT_EQ(llama->data_offset, 1024u);
}

TEST(TokenFileTest, RefusesWrongHeaders) {
  EXPECT_DATA_ERROR(ParseTokenLayout(ToBytes("abc"), "x"), "an odd number of bytes");
  EXPECT_DATA_ERROR(ParseTokenLayout(ToBytes(Llmc(20240520, 2, 0, "")), "x"),
                    "byte 4: llm.c header version 2, expected 1");
  EXPECT_DATA_ERROR(ParseTokenLayout(ToBytes(Llmc(20240801, 7, 3, "abcd")), "x"), "3 tokens need 12 bytes, found 4");
  EXPECT_DATA_ERROR(ParseTokenLayout(ToBytes(Llmc(20240522, 1, 0, "")), "x"), "multiple-choice evaluation file");
  EXPECT_DATA_ERROR(ParseTokenLayout(ToBytes(Llmc(20240520, 1, 3, "").substr(0, 100)), "x"), "the llm.c header");
}

// floor((n-1)/T) windows a file; the token behind the last window exists; none crosses into the next file.
TEST(TokenFileTest, WindowsOfShards) {
  const TemporaryFolder folder;
  const std::vector<std::string> shards = {folder.Write("a", Tokens(9, 0, 2)), folder.Write("b", Tokens(0, 0, 2)),
                                           folder.Write("c", Tokens(4, 50, 2)),
                                           folder.Write("d", Llmc(20240801, 7, 5, Tokens(5, 100000, 4)))};
  const auto windows = TokenWindows::Open(shards, 4);
  ASSERT_OK(windows);
  EXPECT_EQ(windows->windows(), 3);
  EXPECT_EQ(Window(*windows, 0, 0), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(Window(*windows, 1, 1), (std::vector<int64_t>{5, 6, 7, 8}));
  EXPECT_EQ(Window(*windows, 2, 0), (std::vector<int64_t>{100000, 100001, 100002, 100003}));
  EXPECT_EQ(Window(*windows, 2, 1), (std::vector<int64_t>{100001, 100002, 100003, 100004}));
}

TEST(TokenFileTest, TooLargeTokensAreNamed) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a", Tokens(9, 60, 2));
  const auto windows = TokenWindows::Open({path}, 4);
  ASSERT_OK(windows);
  std::vector<int32_t> tokens(4);
  std::byte* to = reinterpret_cast<std::byte*>(tokens.data());
  EXPECT_OK(windows->Read(0, 1, DType::kInt32, 65, to));
  EXPECT_EQ(tokens, (std::vector<int32_t>{61, 62, 63, 64}));
  EXPECT_DATA_ERROR(windows->Read(1, 0, DType::kInt32, 65, to),
                    "'" + path + "', byte 10: token 5 is 65, expected below 65");
}

TEST(TokenFileTest, NoWindowAtAll) {
  const TemporaryFolder folder;
  EXPECT_DATA_ERROR(TokenWindows::Open({folder.Write("a", Tokens(4, 0, 2))}, 4), "the longest file has 4 tokens");
  EXPECT_DATA_ERROR(TokenWindows::Open({folder.Path("none")}, 4), "cannot read");
}

}  // namespace
}  // namespace onnxtrain
