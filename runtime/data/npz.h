// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz: a zip of NAME.npy entries. Other entries are ignored. Names may hold any characters, "/" included.
#ifndef ONNXTRAIN_RUNTIME_DATA_NPZ_H_
#define ONNXTRAIN_RUNTIME_DATA_NPZ_H_

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/data/array.h"
#include "runtime/data/zip.h"
#include "runtime/file_system.h"

namespace onnxtrain {

using NamedTensor = std::pair<std::string, Tensor>;

// The array names (without ".npy") of an archive, in its order.
StatusOr<std::vector<std::string>> NpzNames(std::span<const std::byte> bytes, std::string_view file);

// One array; the checksum is verified. `void_type` as in npy.h.
StatusOr<Tensor> ParseNpzEntry(std::span<const std::byte> bytes, std::string_view file, const ZipEntry& entry,
                               DType void_type = DType::kUndefined);

// Every array of an archive in memory.
StatusOr<std::vector<NamedTensor>> ParseNpz(std::span<const std::byte> bytes, std::string_view file,
                                            DType void_type = DType::kUndefined);

// One array by name; a stored one stays mapped. kInvalidData names the arrays there are.
StatusOr<Array> OpenNpzArray(FileContents file, const std::string& name, DType void_type = DType::kUndefined);

StatusOr<std::vector<NamedTensor>> ReadNpz(const std::string& path, DType void_type = DType::kUndefined);

struct NpzOptions {
  bool always_zip64 = false;  // else only where an array or the file passes 4 GiB
};

// Stored entries, equal bytes for equal tensors; appears whole or not at all. Borrows the tensors.
Status WriteNpz(FileSystem& files, const std::string& path,
                std::span<const std::pair<std::string, const Tensor*>> tensors, const NpzOptions& options = {});
Status WriteNpz(FileSystem& files, const std::string& path, std::span<const NamedTensor> tensors,
                const NpzOptions& options = {});

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_NPZ_H_
