// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/idx.h"

#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/data/byte_reader.h"
#include "runtime/data/inflate.h"

namespace onnxtrain {
namespace {

constexpr size_t kMagicBytes = 4;

struct IdxHeader {
  TensorType type;
  size_t data_offset = 0;
};

DType TypeOfCode(std::byte code) {
  switch (std::to_integer<int>(code)) {
    case 0x08:
      return DType::kUint8;
    case 0x09:
      return DType::kInt8;
    case 0x0b:
      return DType::kInt16;
    case 0x0c:
      return DType::kInt32;
    case 0x0d:
      return DType::kFloat;
    case 0x0e:
      return DType::kDouble;
    default:
      return DType::kUndefined;
  }
}

StatusOr<size_t> DimensionBytes(std::span<const std::byte> magic, std::string_view file) {
  if (magic.size() < kMagicBytes) {
    return DataErrorAt(file, 0,
                       "the file ends inside the IDX header: expected 4 bytes, found " + std::to_string(magic.size()));
  }
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0}) {
    return DataErrorAt(file, 0, "not an IDX file (it does not start with two zero bytes)");
  }
  if (TypeOfCode(magic[2]) == DType::kUndefined) {
    return DataErrorAt(file, 2,
                       "unknown IDX element type " + std::to_string(std::to_integer<int>(magic[2])) +
                           "; known are 8, 9, 11, 12, 13 and 14");
  }
  return size_t{4} * std::to_integer<size_t>(magic[3]);
}

// `head` is magic and dimensions.
StatusOr<IdxHeader> ParseHeader(std::span<const std::byte> head, std::string_view file) {
  ASSIGN_OR_RETURN(const size_t dimension_bytes, DimensionBytes(head, file));
  ByteReader reader(head, file);
  RETURN_IF_ERROR(reader.Seek(kMagicBytes, "the dimensions"));
  std::vector<uint64_t> shape;
  for (size_t i = 0; i < dimension_bytes / 4; ++i) {
    ASSIGN_OR_RETURN(const uint32_t dim, reader.Big32("the IDX dimensions"));
    shape.push_back(dim);
  }
  IdxHeader header;
  ASSIGN_OR_RETURN(header.type, CheckedType(TypeOfCode(head[2]), shape, file, kMagicBytes));
  header.data_offset = kMagicBytes + dimension_bytes;
  return header;
}

Status CheckElementBytes(const IdxHeader& header, uint64_t found, std::string_view file) {
  if (found == header.type.bytes()) return OkStatus();
  return DataErrorAt(file, header.data_offset,
                     ToString(header.type) + " needs " + std::to_string(header.type.bytes()) + " bytes, found " +
                         std::to_string(found));
}

StatusOr<Tensor> InflateIdx(std::span<const std::byte> bytes, std::string_view file) {
  InflateStream stream(InflateStream::Format::kGzip, bytes, file, 0);
  std::vector<std::byte> head(kMagicBytes);
  RETURN_IF_ERROR(stream.Read(head));
  ASSIGN_OR_RETURN(const size_t dimension_bytes, DimensionBytes(head, file));
  head.resize(kMagicBytes + dimension_bytes);
  RETURN_IF_ERROR(stream.Read(std::span(head).subspan(kMagicBytes)));
  ASSIGN_OR_RETURN(const IdxHeader header, ParseHeader(head, file));
  if (header.type.bytes() > MostInflated(bytes.size())) {
    return DataErrorAt(
        file, kMagicBytes,
        ToString(header.type) + " cannot come from " + std::to_string(bytes.size()) + " compressed bytes");
  }
  Tensor tensor(header.type);
  RETURN_IF_ERROR(stream.Read({tensor.data(), tensor.bytes()}));
  RETURN_IF_ERROR(stream.ExpectEnd());
  return tensor;
}

StatusOr<IdxHeader> ParsePlain(std::span<const std::byte> bytes, std::string_view file) {
  ASSIGN_OR_RETURN(const IdxHeader header, ParseHeader(bytes, file));
  RETURN_IF_ERROR(CheckElementBytes(header, bytes.size() - header.data_offset, file));
  return header;
}

}  // namespace

bool IsIdx(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagicBytes && bytes[0] == std::byte{0} && bytes[1] == std::byte{0} &&
         TypeOfCode(bytes[2]) != DType::kUndefined;
}

bool IsGzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

StatusOr<Tensor> ParseIdx(std::span<const std::byte> bytes, std::string_view file) {
  Tensor tensor;
  if (IsGzip(bytes)) {
    ASSIGN_OR_RETURN(tensor, InflateIdx(bytes, file));
  } else {
    ASSIGN_OR_RETURN(const IdxHeader header, ParsePlain(bytes, file));
    tensor = Tensor(header.type);
    if (tensor.bytes() > 0) std::memcpy(tensor.data(), bytes.data() + header.data_offset, tensor.bytes());
  }
  SwapByteOrder({tensor.data(), tensor.bytes()}, SizeOf(tensor.dtype()));
  return tensor;
}

StatusOr<Array> OpenIdx(FileContents file) {
  if (!IsGzip(file.bytes())) {
    ASSIGN_OR_RETURN(const IdxHeader header, ParsePlain(file.bytes(), file.path()));
    if (SizeOf(header.type.dtype) == 1) return Array(std::move(file), header.data_offset, header.type);
  }
  ASSIGN_OR_RETURN(Tensor tensor, ParseIdx(file.bytes(), file.path()));
  return Array(std::move(tensor));
}

}  // namespace onnxtrain
