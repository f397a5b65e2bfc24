// SPDX-License-Identifier: Apache-2.0
// A bounds-checked cursor over the bytes of one file; every error names the file and the byte offset.
#ifndef ONNXTRAIN_RUNTIME_DATA_BYTE_READER_H_
#define ONNXTRAIN_RUNTIME_DATA_BYTE_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"

namespace onnxtrain {

// kInvalidData "'FILE', byte OFFSET: WHAT".
Status DataErrorAt(std::string_view file, uint64_t offset, std::string_view what);

// Bytes of a tensor of this type; empty when the count does not fit, also where another dimension is 0,
// or the rank is above 32. Asked before every allocation whose size a file decides.
std::optional<size_t> CheckedBytes(DType dtype, std::span<const uint64_t> shape);

// The same as a type: kInvalidData at `offset` when it does not fit.
StatusOr<TensorType> CheckedType(DType dtype, std::span<const uint64_t> shape, std::string_view file, uint64_t offset);

// Reverses the bytes of each of bytes.size() / width elements in place.
void SwapByteOrder(std::span<std::byte> bytes, size_t width);

// A bool is one byte, 0 or 1; the first other one is kInvalidData. Other types always pass.
Status CheckBools(DType dtype, std::span<const std::byte> bytes, std::string_view file, uint64_t offset);

class ByteReader {
 public:
  // Borrows both. Offsets count from the start of `bytes`.
  ByteReader(std::span<const std::byte> bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return bytes_.size() - offset_; }
  Status Seek(uint64_t offset, std::string_view what);
  // The next `count` bytes; `what` names them in the message.
  StatusOr<std::span<const std::byte>> Bytes(uint64_t count, std::string_view what);
  StatusOr<uint16_t> Little16(std::string_view what);
  StatusOr<uint32_t> Little32(std::string_view what);
  StatusOr<uint64_t> Little64(std::string_view what);
  StatusOr<uint32_t> Big32(std::string_view what);
  Status Error(std::string_view what) const { return DataErrorAt(file_, offset_, what); }

 private:
  StatusOr<uint64_t> Unsigned(size_t width, bool big_endian, std::string_view what);

  std::span<const std::byte> bytes_;
  std::string_view file_;
  uint64_t offset_ = 0;
};

// Little-endian numbers appended to a header under construction.
void AppendLittle(std::string& out, uint64_t value, size_t width);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_BYTE_READER_H_
