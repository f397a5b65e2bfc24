// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/token_file.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/data/byte_reader.h"

namespace onnxtrain {
namespace {

constexpr uint32_t kMagic16 = 20240520;
constexpr uint32_t kMagic32 = 20240801;
constexpr uint32_t kMagicEval = 20240522;
constexpr size_t kHeaderBytes = 256 * 4;

uint32_t FirstWord(std::span<const std::byte> bytes) {
  uint32_t word = 0;
  if (bytes.size() >= sizeof(word)) std::memcpy(&word, bytes.data(), sizeof(word));
  return word;
}

StatusOr<TokenLayout> ParseLlmcLayout(std::span<const std::byte> bytes, std::string_view file) {
  const uint32_t magic = FirstWord(bytes);
  if (magic == kMagicEval) {
    return DataErrorAt(file, 0, "this is an llm.c multiple-choice evaluation file, not a stream of tokens");
  }
  ByteReader header(bytes, file);
  RETURN_IF_ERROR(header.Bytes(4, "the llm.c header").status());
  ASSIGN_OR_RETURN(const uint32_t version, header.Little32("the llm.c header"));
  const uint32_t expected = magic == kMagic16 ? 1 : 7;
  if (version != expected) {
    return DataErrorAt(file, 4,
                       "llm.c header version " + std::to_string(version) + ", expected " + std::to_string(expected));
  }
  ASSIGN_OR_RETURN(const uint32_t tokens, header.Little32("the llm.c header"));
  RETURN_IF_ERROR(header.Bytes(kHeaderBytes - 12, "the llm.c header").status());
  const TokenLayout layout{magic == kMagic16 ? DType::kUint16 : DType::kUint32, kHeaderBytes, tokens};
  const uint64_t needed = uint64_t{tokens} * SizeOf(layout.dtype);
  if (needed != header.remaining()) {
    return header.Error(std::to_string(tokens) + " tokens need " + std::to_string(needed) + " bytes, found " +
                        std::to_string(header.remaining()));
  }
  return layout;
}

// One token, or the position of the first that is too large.
template <typename From, typename To>
int64_t ConvertTokens(const std::byte* from, int64_t count, uint64_t limit, std::byte* to) {
  for (int64_t i = 0; i < count; ++i) {
    From token;
    std::memcpy(&token, from + static_cast<size_t>(i) * sizeof(From), sizeof(From));
    if (token >= limit) return i;
    const To value = static_cast<To>(token);
    std::memcpy(to + static_cast<size_t>(i) * sizeof(To), &value, sizeof(To));
  }
  return -1;
}

template <typename From>
int64_t ConvertTo(DType dtype, const std::byte* from, int64_t count, uint64_t limit, std::byte* to) {
  if (dtype == DType::kInt64) return ConvertTokens<From, int64_t>(from, count, limit, to);
  CHECK(dtype == DType::kInt32);
  return ConvertTokens<From, int32_t>(from, count, limit, to);
}

}  // namespace

bool IsLlmcTokens(std::span<const std::byte> bytes) {
  const uint32_t magic = FirstWord(bytes);
  return magic == kMagic16 || magic == kMagic32 || magic == kMagicEval;
}

StatusOr<TokenLayout> ParseTokenLayout(std::span<const std::byte> bytes, std::string_view file) {
  if (IsLlmcTokens(bytes)) return ParseLlmcLayout(bytes, file);
  if (bytes.size() % 2 != 0) {
    return DataErrorAt(file, bytes.size(), "an odd number of bytes is not a file of uint16 tokens; cut off?");
  }
  return TokenLayout{DType::kUint16, 0, static_cast<int64_t>(bytes.size() / 2)};
}

StatusOr<TokenWindows> TokenWindows::Open(const std::vector<std::string>& paths, int64_t window) {
  CHECK(window > 0);
  TokenWindows result;
  result.window_ = window;
  int64_t total = 0;
  int64_t longest = 0;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(FileContents file, FileContents::Open(path));
    ASSIGN_OR_RETURN(const TokenLayout layout, ParseTokenLayout(file.bytes(), path));
    result.first_window_.push_back(total);
    total += layout.tokens > 0 ? (layout.tokens - 1) / window : 0;
    longest = std::max(longest, layout.tokens);
    result.shards_.push_back({std::move(file), layout});
  }
  result.first_window_.push_back(total);
  if (total > 0) return result;
  return InvalidDataError("'" + (paths.empty() ? std::string() : paths[0]) + "': no window of " +
                          std::to_string(window) + " tokens and the one after; the longest file has " +
                          std::to_string(longest) + " tokens; use a shorter --seq-len");
}

Status TokenWindows::Read(int64_t window_index, int shift, DType dtype, int64_t limit, std::byte* to) const {
  CHECK(window_index >= 0 && window_index < windows() && (shift == 0 || shift == 1));
  const auto after = std::upper_bound(first_window_.begin(), first_window_.end(), window_index);
  const size_t index = static_cast<size_t>(after - first_window_.begin()) - 1;
  const Shard& shard = shards_[index];
  const int64_t start = (window_index - first_window_[index]) * window_ + shift;
  const size_t width = SizeOf(shard.layout.dtype);
  const size_t offset = shard.layout.data_offset + static_cast<size_t>(start) * width;
  const std::byte* from = shard.file.bytes().data() + offset;
  uint64_t most = uint64_t{1} << (dtype == DType::kInt32 ? 31 : 63);
  if (limit > 0) most = std::min(most, static_cast<uint64_t>(limit));
  const int64_t bad = width == 2 ? ConvertTo<uint16_t>(dtype, from, window_, most, to)
                                 : ConvertTo<uint32_t>(dtype, from, window_, most, to);
  if (bad < 0) return OkStatus();
  uint32_t token = 0;
  std::memcpy(&token, from + static_cast<size_t>(bad) * width, width);
  return DataErrorAt(shard.file.path(), offset + static_cast<size_t>(bad) * width,
                     "token " + std::to_string(start + bad) + " is " + std::to_string(token) + ", expected below " +
                         std::to_string(most) + " (the rows of the embedding)");
}

}  // namespace onnxtrain
