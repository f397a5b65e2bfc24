// SPDX-License-Identifier: Apache-2.0
// Token streams for language models. nanoGPT: uint16 tokens, no header. llm.c: 256 little-endian int32
// {20240520, 1, count} then uint16 tokens, or {20240801, 7, count} then uint32 tokens. Files stay mapped.
#ifndef ONNXTRAIN_RUNTIME_DATA_TOKEN_FILE_H_
#define ONNXTRAIN_RUNTIME_DATA_TOKEN_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/data/file_contents.h"

namespace onnxtrain {

struct TokenLayout {
  DType dtype = DType::kUndefined;  // uint16 or uint32
  size_t data_offset = 0;
  int64_t tokens = 0;
};

// Starts with a magic number of llm.c.
bool IsLlmcTokens(std::span<const std::byte> bytes);
StatusOr<TokenLayout> ParseTokenLayout(std::span<const std::byte> bytes, std::string_view file);

// The windows of a set of token files (shards). A file of n tokens gives floor((n-1)/T) windows; window i of a file
// starts at its token i*T, so that T tokens and the one after them exist; none crosses a file. Reading from any thread
// is fine.
class TokenWindows {
 public:
  // `window` T > 0. Files in the order given (MatchFiles sorts them by name). kInvalidData when no window results.
  static StatusOr<TokenWindows> Open(const std::vector<std::string>& paths, int64_t window);

  int64_t windows() const { return first_window_.back(); }
  int64_t window() const { return window_; }
  // Tokens [i*T + shift, i*T + T + shift) of window i, shift 0 or 1, as int32 or int64 (`dtype`) at `to` (T elements).
  // A token at or above `limit` is kInvalidData with file, position and byte; limit 0: no limit but what dtype holds.
  Status Read(int64_t window_index, int shift, DType dtype, int64_t limit, std::byte* to) const;

 private:
  TokenWindows() = default;

  struct Shard {
    FileContents file;
    TokenLayout layout;
  };
  std::vector<Shard> shards_;
  std::vector<int64_t> first_window_;  // of each shard, then the total
  int64_t window_ = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_TOKEN_FILE_H_
