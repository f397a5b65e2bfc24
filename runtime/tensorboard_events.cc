// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensorboard_events.h"

#include <unistd.h>

#include <array>
#include <bit>

#include "runtime/data/byte_reader.h"

namespace onnxtrain {
namespace {

constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = MakeCrcTable();

// As TFRecord stores it: a CRC of data that holds CRCs would be weak otherwise.
uint32_t MaskedCrc(std::string_view text) {
  const uint32_t crc = Crc32c(std::as_bytes(std::span<const char>(text.data(), text.size())));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// Field numbers of the messages.
constexpr int kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5, kEventSessionLog = 7;
constexpr int kSessionLogStatus = 1, kSessionStart = 1;
constexpr int kSummaryValue = 1, kValueTag = 1, kValueSimpleValue = 2;

// Wire types of protocol buffers.
constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

void AppendVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(0x80 | (value & 0x7f)));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void AppendTag(std::string& out, int field, int wire_type) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
}

void AppendBytes(std::string& out, int field, std::string_view bytes) {
  AppendTag(out, field, kBytes);
  AppendVarint(out, bytes.size());
  out += bytes;
}

std::string EventStart(double seconds, int64_t step) {
  std::string event;
  AppendTag(event, kEventWallTime, kFixed64);
  AppendLittle(event, std::bit_cast<uint64_t>(seconds), 8);
  AppendTag(event, kEventStep, kVarint);
  AppendVarint(event, static_cast<uint64_t>(step));
  return event;
}

std::string FileName(double seconds) {
  char host[256] = "localhost";
  if (::gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  return "events.out.tfevents." + std::to_string(static_cast<int64_t>(seconds)) + "." + host + "." +
         std::to_string(::getpid());
}

}  // namespace

uint32_t Crc32c(std::span<const std::byte> bytes) {
  uint32_t crc = ~0u;
  for (std::byte byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ std::to_integer<uint32_t>(byte)) & 0xff];
  return ~crc;
}

StatusOr<TensorboardEvents> TensorboardEvents::Create(FileSystem& files, const std::string& folder, double seconds,
                                                      int64_t first_step) {
  const std::string start = folder + "/" + FileName(seconds);
  std::string path = start;
  for (int i = 1; files.Exists(path); ++i) path = start + "." + std::to_string(i);
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(path));
  TensorboardEvents events(std::move(file), std::move(path));
  std::string version = EventStart(seconds, 0);
  AppendBytes(version, kEventFileVersion, "brain.Event:2");
  RETURN_IF_ERROR(events.WriteRecord(version));
  if (first_step > 0) {
    std::string session;
    AppendTag(session, kSessionLogStatus, kVarint);
    AppendVarint(session, kSessionStart);
    std::string event = EventStart(seconds, first_step);
    AppendBytes(event, kEventSessionLog, session);
    RETURN_IF_ERROR(events.WriteRecord(event));
  }
  return events;
}

Status TensorboardEvents::Write(double seconds, int64_t step, std::span<const TensorboardScalar> scalars) {
  std::string summary;
  for (const TensorboardScalar& scalar : scalars) {
    std::string value;
    AppendBytes(value, kValueTag, scalar.tag);
    AppendTag(value, kValueSimpleValue, kFixed32);
    AppendLittle(value, std::bit_cast<uint32_t>(scalar.value), 4);
    AppendBytes(summary, kSummaryValue, value);
  }
  std::string event = EventStart(seconds, step);
  AppendBytes(event, kEventSummary, summary);
  return WriteRecord(event);
}

Status TensorboardEvents::WriteRecord(const std::string& event) {
  std::string record;
  AppendLittle(record, event.size(), 8);
  AppendLittle(record, MaskedCrc(record), 4);
  record += event;
  AppendLittle(record, MaskedCrc(event), 4);
  return file_->Append(record);
}

Status TensorboardEvents::Close() {
  RETURN_IF_ERROR(file_->Sync());
  return file_->Close();
}

}  // namespace onnxtrain
