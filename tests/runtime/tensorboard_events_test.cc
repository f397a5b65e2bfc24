// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensorboard_events.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/data/byte_reader.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

// The test vectors of RFC 3720 B.4.
TEST(TensorboardEventsTest, Crc32cMatchesItsStandard) {
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32, std::byte{0})), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43u);
  std::vector<std::byte> counting(32);
  for (size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<std::byte>(i);
  EXPECT_EQ(Crc32c(counting), 0x46dd794eu);
  EXPECT_EQ(Crc32c({}), 0u);
}

// One field of a protocol buffer message: its number and its value as bytes or number.
struct Field {
  uint64_t number;
  uint64_t value;
  std::string bytes;
};

uint64_t TakeVarint(std::string_view& text) {
  uint64_t value = 0;
  for (int shift = 0; !text.empty(); shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(text[0]);
    text.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

std::vector<Field> Fields(std::string_view text) {
  std::vector<Field> fields;
  while (!text.empty()) {
    const uint64_t tag = TakeVarint(text);
    Field field{tag >> 3, 0, ""};
    if ((tag & 7) == 0) {
      field.value = TakeVarint(text);
    } else if ((tag & 7) == 2) {
      const size_t length = TakeVarint(text);
      field.bytes = std::string(text.substr(0, length));
      text.remove_prefix(length);
    } else {
      const size_t width = (tag & 7) == 1 ? 8 : 4;
      std::memcpy(&field.value, text.data(), width);
      text.remove_prefix(width);
    }
    fields.push_back(field);
  }
  return fields;
}

uint32_t Masked(std::span<const std::byte> bytes) {
  const uint32_t crc = Crc32c(bytes);
  return std::rotr(crc, 15) + 0xa282ead8u;
}

std::vector<std::string> Records(const std::string& path) {
  const std::vector<std::byte> bytes = ReadBytes(path);
  ByteReader reader(bytes, path);
  std::vector<std::string> records;
  while (reader.remaining() > 0) {
    const auto length_bytes = std::span(bytes).subspan(reader.offset(), 8);
    const uint64_t length = *reader.Little64("length");
    EXPECT_EQ(*reader.Little32("checksum"), Masked(length_bytes));
    const auto event = *reader.Bytes(length, "event");
    EXPECT_EQ(*reader.Little32("checksum"), Masked(event));
    records.emplace_back(reinterpret_cast<const char*>(event.data()), event.size());
  }
  return records;
}

TEST(TensorboardEventsTest, WritesScalars) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  auto events = TensorboardEvents::Create(files, folder.path(), 1700000000.5, 0);
  ASSERT_OK(events);
  EXPECT_NE(events->path().find("/events.out.tfevents.1700000000."), std::string::npos);
  ASSERT_OK(events->Write(1700000001.25, 300, std::vector<TensorboardScalar>{{"loss", 2.5f}, {"lr", 1e-3f}}));
  ASSERT_OK(events->Close());
  const auto records = Records(events->path());
  ASSERT_EQ(records.size(), 2u);
  const auto version = Fields(records[0]);
  EXPECT_EQ(std::bit_cast<double>(version[0].value), 1700000000.5);
  EXPECT_EQ(version[2].number, 3u);
  EXPECT_EQ(version[2].bytes, "brain.Event:2");
  const auto event = Fields(records[1]);
  EXPECT_EQ(std::bit_cast<double>(event[0].value), 1700000001.25);
  EXPECT_EQ(event[1].value, 300u);
  EXPECT_EQ(event[2].number, 5u);
  const auto values = Fields(event[2].bytes);
  ASSERT_EQ(values.size(), 2u);
  const auto loss = Fields(values[0].bytes);
  EXPECT_EQ(loss[0].bytes, "loss");
  EXPECT_EQ(loss[1].number, 2u);
  EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>(loss[1].value)), 2.5f);
}

TEST(TensorboardEventsTest, AResumedRunHidesWhatWasCut) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  const auto first = TensorboardEvents::Create(files, folder.path(), 5, 0);
  const auto second = TensorboardEvents::Create(files, folder.path(), 5, 150);
  ASSERT_OK(first);
  ASSERT_OK(second);
  EXPECT_NE(first->path(), second->path());
  const auto records = Records(second->path());
  ASSERT_EQ(records.size(), 2u);
  const auto event = Fields(records[1]);
  EXPECT_EQ(event[1].value, 150u);
  EXPECT_EQ(event[2].number, 7u);
  EXPECT_EQ(Fields(event[2].bytes)[0].value, 1u);  // SessionLog.START
}

}  // namespace
}  // namespace onnxtrain
