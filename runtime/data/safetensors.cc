// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "runtime/data/byte_reader.h"

namespace onnxtrain {
namespace {

constexpr uint64_t kLongestHeader = 100'000'000;
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"F64", DType::kDouble}, {"F32", DType::kFloat},  {"F16", DType::kFloat16}, {"BF16", DType::kBfloat16},
    {"I64", DType::kInt64},  {"I32", DType::kInt32},  {"I16", DType::kInt16},   {"I8", DType::kInt8},
    {"U64", DType::kUint64}, {"U32", DType::kUint32}, {"U16", DType::kUint16},  {"U8", DType::kUint8},
    {"BOOL", DType::kBool}};

// One tensor as the JSON says it, nothing checked.
struct RawEntry {
  std::string name;
  std::string dtype;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

// Receives the events of the JSON parser. The grammar has three levels, so a small state machine does; it never builds
// a tree, sees duplicate keys, and stops at the first surprise.
class HeaderHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<RawEntry> entries;
  std::map<std::string, std::string> metadata;
  std::string error;
  size_t error_position = 0;

  bool null() override { return Refuse("null"); }
  bool boolean(bool) override { return Refuse("a boolean"); }
  bool number_integer(number_integer_t) override { return Refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return Refuse("a fraction"); }
  bool binary(binary_t&) override { return Refuse("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (numbers_ == nullptr) return Refuse("a number");
    if (numbers_->size() >= 33) return Fail("an array of more than 32 numbers" + Place());
    numbers_->push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ != 2 || numbers_ != nullptr) return Refuse("a string");
    if (in_metadata_) {
      metadata[key_] = value;
      return true;
    }
    if (key_ != "dtype") return Refuse("a string");
    entries.back().dtype = value;
    return true;
  }

  bool key(string_t& value) override {
    key_ = value;
    if (depth_ == 1) {
      if (!names_.insert(value).second) return Fail("tensor '" + value + "' occurs twice");
      in_metadata_ = value == kMetadata;
      if (!in_metadata_) entries.push_back({value, {}, {}, {}});
      fields_.clear();
      return true;
    }
    if (!fields_.insert(value).second) return Fail("key '" + value + "' occurs twice" + Place());
    if (in_metadata_ || value == "dtype" || value == "shape" || value == "data_offsets") return true;
    return Fail("unknown key '" + value + "'" + Place());
  }

  bool start_object(size_t) override {
    if (depth_ >= 2 || numbers_ != nullptr) return Refuse("an object");
    ++depth_;
    return true;
  }

  bool end_object() override {
    --depth_;
    return true;
  }

  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || numbers_ != nullptr) return Refuse("an array");
    if (key_ != "shape" && key_ != "data_offsets") return Refuse("an array");
    auto& target = key_ == "shape" ? entries.back().shape : entries.back().offsets;
    numbers_ = &target.emplace();
    return true;
  }

  bool end_array() override {
    numbers_ = nullptr;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error = "the header is not valid JSON";
    error_position = position;
    return false;
  }

 private:
  std::string Place() const { return entries.empty() ? std::string() : " in tensor '" + entries.back().name + "'"; }
  bool Fail(std::string what) {
    error = std::move(what);
    return false;
  }
  bool Refuse(const char* what) {
    return Fail(std::string(what) + " is not expected as the value of '" + key_ + "'" + Place());
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  std::string key_;
  std::set<std::string> names_;
  std::set<std::string> fields_;
  std::vector<uint64_t>* numbers_ = nullptr;
};

StatusOr<SafetensorsEntry> CheckEntry(const RawEntry& raw, uint64_t data_start, uint64_t data_bytes,
                                      std::string_view file) {
  const std::string name = "tensor '" + raw.name + "': ";
  if (raw.dtype.empty() || !raw.shape || !raw.offsets) {
    return DataErrorAt(file, 8, name + "dtype, shape and data_offsets are needed");
  }
  const auto* type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& known) { return known.first == raw.dtype; });
  if (type == std::end(kTypes)) return DataErrorAt(file, 8, name + "element type " + raw.dtype + " is not supported");
  if (raw.offsets->size() != 2) return DataErrorAt(file, 8, name + "data_offsets are two numbers");
  const uint64_t begin = (*raw.offsets)[0];
  const uint64_t end = (*raw.offsets)[1];
  if (begin > end || end > data_bytes) {
    return DataErrorAt(file, 8,
                       name + "bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                           " do not lie inside the " + std::to_string(data_bytes) +
                           " bytes of data; the file may be cut off");
  }
  SafetensorsEntry entry{raw.name, {}, static_cast<size_t>(data_start + begin)};
  auto checked = CheckedType(type->second, *raw.shape, file, 8);
  if (!checked.ok()) return DataErrorAt(file, 8, name + "the shape is too large");
  entry.type = std::move(checked).value();
  if (entry.type.bytes() == end - begin) return entry;
  return DataErrorAt(file, entry.offset,
                     name + ToString(entry.type) + " needs " + std::to_string(entry.type.bytes()) + " bytes, found " +
                         std::to_string(end - begin));
}

// The format forbids holes and overlaps.
Status CheckContiguous(const std::vector<SafetensorsEntry>& entries, uint64_t start, uint64_t end,
                       std::string_view file) {
  uint64_t at = start;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.offset != at) {
      return DataErrorAt(file, entry.offset,
                         "tensor '" + entry.name + "' is expected at byte " + std::to_string(at) +
                             ": the tensors overlap or leave a hole");
    }
    at += entry.type.bytes();
  }
  if (at == end) return OkStatus();
  return DataErrorAt(file, at, std::to_string(end - at) + " bytes after the last tensor");
}

StatusOr<HeaderHandler> ParseJson(std::span<const std::byte> text, std::string_view file) {
  HeaderHandler handler;
  const char* begin = reinterpret_cast<const char*>(text.data());
  bool parsed = false;
  // The parser itself does not throw here; running out of memory on a large header would.
  try {
    parsed = nlohmann::json::sax_parse(begin, begin + text.size(), &handler);
  } catch (const std::exception& exception) {
    return DataErrorAt(file, 8, std::string("the header cannot be read: ") + exception.what());
  }
  if (!parsed) return DataErrorAt(file, 8 + handler.error_position, handler.error);
  return handler;
}

StatusOr<uint64_t> HeaderLength(std::span<const std::byte> bytes, std::string_view file) {
  ByteReader reader(bytes, file);
  ASSIGN_OR_RETURN(const uint64_t length, reader.Little64("the header length"));
  if (length > kLongestHeader || length > reader.remaining()) {
    return DataErrorAt(file, 0,
                       "a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(bytes.size()) +
                           "; not a safetensors file, or cut off");
  }
  return length;
}

}  // namespace

bool IsSafetensors(std::span<const std::byte> bytes) {
  return bytes.size() >= 9 && HeaderLength(bytes, "").ok() && bytes[8] == std::byte{'{'};
}

StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> bytes, std::string_view file) {
  ASSIGN_OR_RETURN(const uint64_t length, HeaderLength(bytes, file));
  if (length == 0 || bytes[8] != std::byte{'{'}) return DataErrorAt(file, 8, "the header does not start with '{'");
  ASSIGN_OR_RETURN(HeaderHandler raw, ParseJson(bytes.subspan(8, length), file));
  SafetensorsHeader header;
  header.metadata = std::move(raw.metadata);
  for (const RawEntry& entry : raw.entries) {
    ASSIGN_OR_RETURN(SafetensorsEntry checked, CheckEntry(entry, 8 + length, bytes.size() - 8 - length, file));
    header.entries.push_back(std::move(checked));
  }
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.offset, a.type.bytes()) < std::pair(b.offset, b.type.bytes());
  });
  RETURN_IF_ERROR(CheckContiguous(header.entries, 8 + length, bytes.size(), file));
  return header;
}

StatusOr<std::vector<NamedTensor>> ParseSafetensors(std::span<const std::byte> bytes, std::string_view file) {
  ASSIGN_OR_RETURN(const SafetensorsHeader header, ParseSafetensorsHeader(bytes, file));
  std::vector<NamedTensor> tensors;
  for (const SafetensorsEntry& entry : header.entries) {
    const auto data = bytes.subspan(entry.offset, entry.type.bytes());
    RETURN_IF_ERROR(CheckBools(entry.type.dtype, data, file, entry.offset));
    Tensor tensor(entry.type);
    if (!data.empty()) std::memcpy(tensor.data(), data.data(), data.size());
    tensors.emplace_back(entry.name, std::move(tensor));
  }
  return tensors;
}

StatusOr<std::vector<NamedTensor>> ReadSafetensors(const std::string& path) {
  ASSIGN_OR_RETURN(const FileContents file, FileContents::Open(path));
  return ParseSafetensors(file.bytes(), path);
}

StatusOr<Array> OpenSafetensorsArray(FileContents file, const std::string& name) {
  ASSIGN_OR_RETURN(const SafetensorsHeader header, ParseSafetensorsHeader(file.bytes(), file.path()));
  std::string list;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.name == name) {
      const auto data = file.bytes().subspan(entry.offset, entry.type.bytes());
      RETURN_IF_ERROR(CheckBools(entry.type.dtype, data, file.path(), entry.offset));
      return Array(std::move(file), entry.offset, entry.type);
    }
    if (list.size() < 500) list += (list.empty() ? "" : ", ") + entry.name;
  }
  return InvalidDataError("'" + file.path() + "' has no tensor '" + name + "'; it has: " + list);
}

StatusOr<std::string> SafetensorsHeaderFor(std::span<const std::pair<std::string, const Tensor*>> tensors,
                                           const std::map<std::string, std::string>& metadata) {
  std::set<std::string_view> names = {kMetadata};
  uint64_t offset = 0;
  std::string text = "{";
  try {
    if (!metadata.empty()) text += "\"" + std::string(kMetadata) + "\":" + nlohmann::json(metadata).dump();
    for (const auto& [name, tensor] : tensors) {
      if (!names.insert(name).second) return InternalError("two tensors have the name '" + name + "'");
      const auto* type =
          std::find_if(std::begin(kTypes), std::end(kTypes),
                       [&, dtype = tensor->dtype()](const auto& known) { return known.second == dtype; });
      CHECK_WITH(type != std::end(kTypes), name);
      const nlohmann::ordered_json entry = {
          {"dtype", type->first}, {"shape", tensor->shape()}, {"data_offsets", {offset, offset + tensor->bytes()}}};
      if (text.size() > 1) text += ",";
      text += nlohmann::json(name).dump() + ":" + entry.dump();
      offset += tensor->bytes();
    }
  } catch (const nlohmann::json::exception& exception) {
    return InternalError(std::string("a name is not UTF-8: ") + exception.what());
  }
  text += "}";
  text.append((64 - (8 + text.size()) % 64) % 64, ' ');
  std::string header;
  AppendLittle(header, text.size(), 8);
  return header + text;
}

Status WriteSafetensors(FileSystem& files, const std::string& path, std::span<const NamedTensor> tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::vector<std::pair<std::string, const Tensor*>> borrowed;
  for (const NamedTensor& tensor : tensors) borrowed.emplace_back(tensor.first, &tensor.second);
  ASSIGN_OR_RETURN(const std::string header, SafetensorsHeaderFor(borrowed, metadata));
  return WriteFileAtomically(files, path, [&](WritableFile& file) {
    RETURN_IF_ERROR(file.Append(header));
    for (const auto& [name, tensor] : tensors) {
      RETURN_IF_ERROR(file.Append(std::span<const std::byte>(tensor.data(), tensor.bytes())));
    }
    return OkStatus();
  });
}

}  // namespace onnxtrain
