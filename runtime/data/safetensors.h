// SPDX-License-Identifier: Apache-2.0
// safetensors: uint64 header length, JSON {name: {dtype, shape, data_offsets}, "__metadata__": {string: string}},
// then the tensors without gaps. Names in any characters. 8-bit floats are refused.
#ifndef ONNXTRAIN_RUNTIME_DATA_SAFETENSORS_H_
#define ONNXTRAIN_RUNTIME_DATA_SAFETENSORS_H_

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/data/array.h"
#include "runtime/file_system.h"

namespace onnxtrain {

using NamedTensor = std::pair<std::string, Tensor>;

struct SafetensorsEntry {
  std::string name;
  TensorType type;
  size_t offset = 0;  // in the file
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data
  std::map<std::string, std::string> metadata;
};

// Looks at the first bytes only.
bool IsSafetensors(std::span<const std::byte> bytes);

// Everything is checked but bools: the entries fill the file exactly, without overlap.
StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> bytes, std::string_view file);

StatusOr<std::vector<NamedTensor>> ParseSafetensors(std::span<const std::byte> bytes, std::string_view file);
StatusOr<std::vector<NamedTensor>> ReadSafetensors(const std::string& path);

// One tensor by name, mapped. kInvalidData lists the tensors there are.
StatusOr<Array> OpenSafetensorsArray(FileContents file, const std::string& name);

// Length and JSON, padded so that the data starts at a multiple of 64. Refused: names that occur twice or are not
// UTF-8.
StatusOr<std::string> SafetensorsHeaderFor(std::span<const std::pair<std::string, const Tensor*>> tensors,
                                           const std::map<std::string, std::string>& metadata);

// In the order given; appears whole or not at all.
Status WriteSafetensors(FileSystem& files, const std::string& path, std::span<const NamedTensor> tensors,
                        const std::map<std::string, std::string>& metadata = {});

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_SAFETENSORS_H_
