// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy, versions 1 to 3 (numpy.lib.format): "\x93NUMPY", version, header length, a Python dict with descr,
// fortran_order and shape, then the elements. Objects, strings, complex and structured types are refused.
// "|V2", how bfloat16 is saved, is refused unless the caller says what it means.
#ifndef ONNXTRAIN_RUNTIME_DATA_NPY_H_
#define ONNXTRAIN_RUNTIME_DATA_NPY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/file_system.h"

namespace onnxtrain {

struct NpyHeader {
  TensorType type;  // its size is checked to fit
  bool big_endian = false;
  bool fortran_order = false;  // first axis fastest
  size_t data_offset = 0;

  // The elements can be used where they lie (bools must be checked first).
  bool plain() const { return !big_endian && !fortran_order; }
};

// Length of everything before the elements, from the first 12 bytes of a file.
constexpr size_t kNpyPrefixBytes = 12;
bool IsNpy(std::span<const std::byte> bytes);
StatusOr<size_t> NpyDataOffset(std::span<const std::byte> prefix, std::string_view file);

// `bytes` starts at the magic and holds at least the whole header. `void_type`: the 16-bit type "|V2" stands for.
StatusOr<NpyHeader> ParseNpyHeader(std::span<const std::byte> bytes, std::string_view file,
                                   DType void_type = DType::kUndefined);

// The tensor of a header whose elements `read` delivers into the given bytes.
StatusOr<Tensor> ReadNpyElements(const NpyHeader& header, std::string_view file,
                                 const std::function<Status(std::span<std::byte>)>& read);

// A whole file in memory; bytes after the elements are refused.
StatusOr<Tensor> ParseNpy(std::span<const std::byte> bytes, std::string_view file, DType void_type = DType::kUndefined);

// Magic, version 1 and header for `type`, padded so that the elements start at a multiple of 64.
// bfloat16 is written as "|V2".
std::string NpyHeaderFor(const TensorType& type);

// Appears whole or not at all.
Status WriteNpy(FileSystem& files, const std::string& path, const Tensor& tensor);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_NPY_H_
