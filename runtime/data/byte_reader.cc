// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/byte_reader.h"

#include <algorithm>
#include <limits>

namespace onnxtrain {

Status DataErrorAt(std::string_view file, uint64_t offset, std::string_view what) {
  return InvalidDataError("'" + std::string(file) + "', byte " + std::to_string(offset) + ": " + std::string(what));
}

std::optional<size_t> CheckedBytes(DType dtype, std::span<const uint64_t> shape) {
  constexpr size_t kMostDims = 32;
  constexpr uint64_t kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (shape.size() > kMostDims || SizeOf(dtype) == 0) return std::nullopt;
  uint64_t bytes = SizeOf(dtype);
  bool empty = false;
  for (uint64_t dim : shape) {
    if (dim == 0) {
      empty = true;
    } else if (dim > kMost / bytes) {
      return std::nullopt;
    } else {
      bytes *= dim;
    }
  }
  return empty ? 0 : static_cast<size_t>(bytes);
}

StatusOr<TensorType> CheckedType(DType dtype, std::span<const uint64_t> shape, std::string_view file, uint64_t offset) {
  if (!CheckedBytes(dtype, shape).has_value()) {
    return DataErrorAt(file, offset, "the shape is too large (more than 2^63 bytes, or more than 32 dimensions)");
  }
  return TensorType{dtype, Shape(shape.begin(), shape.end())};
}

void SwapByteOrder(std::span<std::byte> bytes, size_t width) {
  if (width < 2) return;
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    std::reverse(bytes.begin() + at, bytes.begin() + at + width);
  }
}

Status CheckBools(DType dtype, std::span<const std::byte> bytes, std::string_view file, uint64_t offset) {
  if (dtype != DType::kBool) return OkStatus();
  const auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; });
  if (bad == bytes.end()) return OkStatus();
  return DataErrorAt(file, offset + static_cast<uint64_t>(bad - bytes.begin()),
                     "a bool is 0 or 1, found " + std::to_string(std::to_integer<int>(*bad)));
}

Status ByteReader::Seek(uint64_t offset, std::string_view what) {
  if (offset > bytes_.size()) {
    return Error(std::string(what) + " is said to be at byte " + std::to_string(offset) + ", but the file has " +
                 std::to_string(bytes_.size()) + " bytes");
  }
  offset_ = offset;
  return OkStatus();
}

StatusOr<std::span<const std::byte>> ByteReader::Bytes(uint64_t count, std::string_view what) {
  if (count > remaining()) {
    return Error("the file ends inside " + std::string(what) + ": expected " + std::to_string(count) +
                 " bytes, found " + std::to_string(remaining()));
  }
  const auto result = bytes_.subspan(offset_, count);
  offset_ += count;
  return result;
}

StatusOr<uint64_t> ByteReader::Unsigned(size_t width, bool big_endian, std::string_view what) {
  ASSIGN_OR_RETURN(const auto bytes, Bytes(width, what));
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) {
    const size_t place = big_endian ? width - 1 - i : i;
    value |= std::to_integer<uint64_t>(bytes[i]) << (8 * place);
  }
  return value;
}

StatusOr<uint16_t> ByteReader::Little16(std::string_view what) {
  ASSIGN_OR_RETURN(const uint64_t value, Unsigned(2, false, what));
  return static_cast<uint16_t>(value);
}

StatusOr<uint32_t> ByteReader::Little32(std::string_view what) {
  ASSIGN_OR_RETURN(const uint64_t value, Unsigned(4, false, what));
  return static_cast<uint32_t>(value);
}

StatusOr<uint64_t> ByteReader::Little64(std::string_view what) { return Unsigned(8, false, what); }

StatusOr<uint32_t> ByteReader::Big32(std::string_view what) {
  ASSIGN_OR_RETURN(const uint64_t value, Unsigned(4, true, what));
  return static_cast<uint32_t>(value);
}

void AppendLittle(std::string& out, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

}  // namespace onnxtrain
