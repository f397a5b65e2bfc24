// SPDX-License-Identifier: Apache-2.0
// Decompression of a deflate stream held in memory, as a reader asks for it: what a hostile file claims to expand to
// is never allocated before it is known to be possible.
#ifndef ONNXTRAIN_RUNTIME_DATA_INFLATE_H_
#define ONNXTRAIN_RUNTIME_DATA_INFLATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "graph/status.h"

namespace onnxtrain {

// Deflate expands at most 1032 times.
uint64_t MostInflated(uint64_t compressed_bytes);

class InflateStream {
 public:
  enum class Format {
    kRaw,   // as inside a zip
    kGzip,  // header, stream, checksum; several members follow each other as one
  };
  // Borrows `input`. `file` and `offset` (of the input inside the file) are for messages.
  InflateStream(Format format, std::span<const std::byte> input, std::string_view file, uint64_t offset);
  InflateStream(InflateStream&&) noexcept;
  ~InflateStream();

  // The next out.size() bytes; kInvalidData where the stream is broken or ends before.
  Status Read(std::span<std::byte> out);
  // kInvalidData unless stream and input both end here.
  Status ExpectEnd();

 private:
  struct State;
  StatusOr<size_t> ReadSome(std::span<std::byte> out);
  Status Error(std::string_view what) const;

  std::unique_ptr<State> state_;
};

// CRC-32 as in gzip and zip.
uint32_t Crc32(std::span<const std::byte> bytes, uint32_t seed = 0);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_INFLATE_H_
