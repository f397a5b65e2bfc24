// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "runtime/data/byte_reader.h"

namespace onnxtrain {

struct InflateStream::State {
  z_stream stream = {};
  Format format = Format::kRaw;
  std::span<const std::byte> input;
  std::string file;
  uint64_t offset = 0;
  size_t taken = 0;  // bytes of the input given to zlib so far
  bool ended = false;
};

uint64_t MostInflated(uint64_t compressed_bytes) {
  constexpr uint64_t kFactor = 1032;
  if (compressed_bytes > std::numeric_limits<uint64_t>::max() / kFactor - 1) return UINT64_MAX;
  return (compressed_bytes + 1) * kFactor;
}

InflateStream::InflateStream(Format format, std::span<const std::byte> input, std::string_view file, uint64_t offset)
    : state_(std::make_unique<State>()) {
  state_->format = format;
  state_->input = input;
  state_->file = std::string(file);
  state_->offset = offset;
  const int window = format == Format::kGzip ? 15 + 16 : -15;
  CHECK(inflateInit2(&state_->stream, window) == Z_OK);
}

InflateStream::InflateStream(InflateStream&&) noexcept = default;

InflateStream::~InflateStream() {
  if (state_ != nullptr) inflateEnd(&state_->stream);
}

Status InflateStream::Error(std::string_view what) const {
  return DataErrorAt(state_->file, state_->offset + state_->taken - state_->stream.avail_in, what);
}

StatusOr<size_t> InflateStream::ReadSome(std::span<std::byte> out) {
  constexpr size_t kMostAtOnce = size_t{1} << 30;
  State& state = *state_;
  z_stream& stream = state.stream;
  if (stream.avail_in == 0) {
    const auto rest = state.input.subspan(state.taken);
    stream.avail_in = static_cast<uInt>(std::min(rest.size(), kMostAtOnce));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest.data()));
    state.taken += stream.avail_in;
  }
  const size_t wanted = std::min(out.size(), kMostAtOnce);
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(wanted);
  const int result = inflate(&stream, Z_NO_FLUSH);
  const size_t produced = wanted - stream.avail_out;
  if (result == Z_STREAM_END) {
    state.ended = true;
    const size_t left = state.input.size() - state.taken + stream.avail_in;
    if (state.format == Format::kGzip && left > 0) {
      // Another member follows, or something that is none: inflate says which.
      state.ended = false;
      CHECK(inflateReset(&stream) == Z_OK);
    }
    return produced;
  }
  if (result != Z_OK && result != Z_BUF_ERROR) {
    return Error(std::string("the compressed data is broken: ") + (stream.msg != nullptr ? stream.msg : "no detail"));
  }
  const bool starved = stream.avail_in == 0 && state.taken == state.input.size();
  if (produced == 0 && starved) return Error("the compressed data ends too early");
  return produced;
}

Status InflateStream::Read(std::span<std::byte> out) {
  while (!out.empty()) {
    if (state_->ended) {
      return Error("the compressed data holds " + std::to_string(out.size()) + " bytes less than its header says");
    }
    ASSIGN_OR_RETURN(const size_t produced, ReadSome(out));
    out = out.subspan(produced);
  }
  return OkStatus();
}

Status InflateStream::ExpectEnd() {
  std::byte extra[1];
  while (!state_->ended) {
    ASSIGN_OR_RETURN(const size_t produced, ReadSome(extra));
    if (produced > 0) return Error("the compressed data holds more bytes than its header says");
  }
  if (state_->taken != state_->input.size() || state_->stream.avail_in != 0) {
    return Error("bytes after the end of the compressed data");
  }
  return OkStatus();
}

uint32_t Crc32(std::span<const std::byte> bytes, uint32_t seed) {
  if (bytes.empty()) return seed;  // zlib takes a null pointer for a reset
  return static_cast<uint32_t>(crc32_z(seed, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace onnxtrain
