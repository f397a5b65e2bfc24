// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/rendezvous_message.h"

#include <algorithm>
#include <charconv>

namespace onnxtrain {
namespace {

constexpr std::string_view kMagic = "ONXTRDV1";

void AppendLength(size_t length, std::string& bytes) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(length >> shift & 0xff);
}

size_t LengthAt(std::string_view bytes, size_t offset) {
  size_t length = 0;
  for (size_t i = 4; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return length;
}

bool ReadNumber(const std::string& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

bool IsPrintable(const std::string& text) {
  for (const char c : text) {
    if (c < ' ' || c > '~') return false;
  }
  return text.size() <= 256;
}

std::string RankText(const RendezvousHello& hello) {
  return "rank " + std::to_string(hello.rank) + " (" + hello.host + ")";
}

std::string Difference(const char* what, const RendezvousHello& a, const std::string& of_a, const RendezvousHello& b,
                       const std::string& of_b) {
  if (of_a == of_b) return "";
  return std::string(what) + " differ: " + RankText(a) + " has " + of_a + ", " + RankText(b) + " has " + of_b;
}

}  // namespace

std::string FrameOf(const std::vector<std::string>& fields) {
  std::string body;
  for (const std::string& field : fields) {
    AppendLength(field.size(), body);
    body += field;
  }
  CHECK(body.size() <= kRendezvousLimit);
  std::string frame(kMagic);
  AppendLength(body.size(), frame);
  return frame + body;
}

StatusOr<std::optional<std::vector<std::string>>> ParseFrame(std::string_view bytes) {
  const size_t known = std::min(bytes.size(), kMagic.size());
  if (bytes.substr(0, known) != kMagic.substr(0, known)) return InvalidDataError("it does not speak this protocol");
  if (bytes.size() < kRendezvousHeader) return std::optional<std::vector<std::string>>();
  const size_t length = LengthAt(bytes, kMagic.size());
  if (length > kRendezvousLimit) return InvalidDataError("its message claims " + std::to_string(length) + " bytes");
  bytes.remove_prefix(kRendezvousHeader);
  if (bytes.size() < length) return std::optional<std::vector<std::string>>();
  if (bytes.size() > length) return InvalidDataError("it sent more than its message");
  std::vector<std::string> fields;
  while (!bytes.empty()) {
    const size_t size = bytes.size() < 4 ? kRendezvousLimit : LengthAt(bytes, 0);
    if (bytes.size() < 4 || size > bytes.size() - 4) return InvalidDataError("a field leaves its message");
    fields.emplace_back(bytes.substr(4, size));
    bytes.remove_prefix(4 + size);
  }
  return std::optional(std::move(fields));
}

std::string FrameOf(const RendezvousHello& hello) {
  return FrameOf({"hello", std::to_string(hello.rank), std::to_string(hello.world_size),
                  std::to_string(hello.local_rank), hello.host, hello.identity.project_version,
                  hello.identity.library_version, hello.identity.configuration});
}

StatusOr<RendezvousHello> HelloOf(const std::vector<std::string>& fields) {
  RendezvousHello hello;
  if (fields.size() != 8 || fields[0] != "hello" || !ReadNumber(fields[1], hello.rank) ||
      !ReadNumber(fields[2], hello.world_size) || !ReadNumber(fields[3], hello.local_rank)) {
    return InvalidDataError("it sent no hello");
  }
  for (size_t i = 4; i < fields.size(); ++i) {
    if (!IsPrintable(fields[i])) return InvalidDataError("its hello is not printable text");
  }
  hello.host = fields[4];
  hello.identity = {fields[5], fields[6], fields[7]};
  return hello;
}

std::string Conflict(const RendezvousHello& mine, const RendezvousHello& other) {
  const RendezvousIdentity& a = mine.identity;
  const RendezvousIdentity& b = other.identity;
  for (std::string text :
       {Difference("versions of onnx-train", mine, a.project_version, other, b.project_version),
        Difference("versions of NCCL", mine, a.library_version, other, b.library_version),
        Difference("world sizes", mine, std::to_string(mine.world_size), other, std::to_string(other.world_size)),
        Difference("configurations (model, options or data layout)", mine, a.configuration, other, b.configuration)}) {
    if (!text.empty()) return text;
  }
  if (mine.rank == other.rank) return RankText(mine) + " and another process (" + other.host + ") have the same rank";
  if (mine.host == other.host && mine.local_rank == other.local_rank) {
    return RankText(mine) + " and " + RankText(other) + " both have local rank " + std::to_string(mine.local_rank);
  }
  return other.rank < mine.world_size ? ""
                                      : RankText(other) + " does not fit a world of " + std::to_string(mine.world_size);
}

}  // namespace onnxtrain
