// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/cifar.h"

#include <utility>

#include "runtime/data/byte_reader.h"

namespace onnxtrain {
namespace {

constexpr size_t kImageBytes = 3 * 32 * 32;

struct Label {
  std::string_view name;
  int classes;
};

// The label bytes at the start of a record; empty where the file cannot be of this kind.
std::vector<Label> LabelsOf(size_t file_bytes) {
  if (file_bytes == 0) return {};
  if (file_bytes % (kImageBytes + 1) == 0) return {{"labels", 10}};
  if (file_bytes % (kImageBytes + 2) == 0) return {{"coarse", 20}, {"fine", 100}};
  return {};
}

Status CheckLabels(std::span<const std::byte> bytes, const std::string& path, const std::vector<Label>& labels) {
  const size_t record = kImageBytes + labels.size();
  for (size_t start = 0; start < bytes.size(); start += record) {
    for (size_t i = 0; i < labels.size(); ++i) {
      const int found = std::to_integer<int>(bytes[start + i]);
      if (found < labels[i].classes) continue;
      return DataErrorAt(path, start + i,
                         "record " + std::to_string(start / record) + " has " + std::string(labels[i].name) + " " +
                             std::to_string(found) + ", expected below " + std::to_string(labels[i].classes) +
                             "; is this a CIFAR file?");
    }
  }
  return OkStatus();
}

}  // namespace

bool MayBeCifar(size_t file_bytes) { return !LabelsOf(file_bytes).empty(); }

std::vector<std::string> CifarNames(size_t file_bytes) {
  std::vector<std::string> names = {"images"};
  for (const Label& label : LabelsOf(file_bytes)) names.emplace_back(label.name);
  return names;
}

StatusOr<Array> OpenCifar(FileContents file, const std::string& name) {
  const auto bytes = file.bytes();
  const std::vector<Label> labels = LabelsOf(bytes.size());
  if (labels.empty()) {
    return DataErrorAt(file.path(), bytes.size(),
                       "not a whole number of CIFAR records (3073 bytes, CIFAR-100: 3074 bytes)");
  }
  RETURN_IF_ERROR(CheckLabels(bytes, file.path(), labels));
  const size_t record = kImageBytes + labels.size();
  const int64_t count = static_cast<int64_t>(bytes.size() / record);
  if (name == "images") {
    return Array(std::move(file), labels.size(), TensorType{DType::kUint8, {count, 3, 32, 32}}, record);
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].name == name) return Array(std::move(file), i, TensorType{DType::kUint8, {count}}, record);
  }
  std::string list = "images";
  for (const Label& label : labels) list += ", " + std::string(label.name);
  return InvalidDataError("'" + file.path() + "' has no array '" + name + "'; it has: " + list);
}

}  // namespace onnxtrain
