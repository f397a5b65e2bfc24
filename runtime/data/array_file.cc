// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/array_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "runtime/data/byte_reader.h"
#include "runtime/data/cifar.h"
#include "runtime/data/csv.h"
#include "runtime/data/file_contents.h"
#include "runtime/data/idx.h"
#include "runtime/data/npy.h"
#include "runtime/data/npz.h"
#include "runtime/data/safetensors.h"
#include "runtime/data/token_file.h"

namespace onnxtrain {
namespace {

enum class Format { kNpy, kNpz, kIdx, kSafetensors, kCsv, kTensorProto, kBin, kUnknown };

bool IsZip(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 &&
         (std::memcmp(bytes.data(), "PK\3\4", 4) == 0 || std::memcmp(bytes.data(), "PK\5\6", 4) == 0);
}

std::string Ending(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  for (char& c : ending) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return ending;
}

// What an ending promises is what the parser demands, so that a damaged file is reported as such.
Format FormatOf(const FileContents& file) {
  const auto bytes = file.bytes();
  const std::string ending = Ending(file.path());
  if (IsNpy(bytes) || ending == ".npy") return Format::kNpy;
  if (IsZip(bytes) || ending == ".npz") return Format::kNpz;
  if (ending == ".safetensors") return Format::kSafetensors;
  if (ending == ".csv" || ending == ".tsv") return Format::kCsv;
  if (ending == ".pb") return Format::kTensorProto;
  if (ending == ".bin") return Format::kBin;
  if (IsGzip(bytes) || ending == ".gz" || IsIdx(bytes) || ending.ends_with("-ubyte") || ending == ".idx") {
    return Format::kIdx;
  }
  if (IsSafetensors(bytes)) return Format::kSafetensors;
  if (IsLlmcTokens(bytes)) return Format::kBin;
  return ending == ".txt" ? Format::kCsv : Format::kUnknown;
}

Status UnknownFormat(const std::string& path) {
  return InvalidDataError("'" + path +
                          "': not a known array format; expected npy, npz, IDX, CIFAR, safetensors, CSV, token .bin or "
                          "TensorProto .pb, recognised by content or ending");
}

std::string Join(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    if (list.size() > 500) return list + ", ...";
    list += (list.empty() ? "" : ", ") + name;
  }
  return list.empty() ? "none" : list;
}

Status NoEntries(const std::string& path, const std::string& entry) {
  return InvalidDataError("'" + path + "' holds a single array; '#" + entry + "' is not expected");
}

// A .bin may be tokens or CIFAR; only llm.c's header tells for certain.
StatusOr<std::vector<std::string>> BinNames(const FileContents& file) {
  const auto bytes = file.bytes();
  if (IsLlmcTokens(bytes) || !MayBeCifar(bytes.size())) return std::vector<std::string>{""};
  std::vector<std::string> names = CifarNames(bytes.size());
  if (bytes.size() % 2 == 0) names.push_back("tokens");
  return names;
}

StatusOr<std::vector<std::string>> Names(const FileContents& file, Format format) {
  switch (format) {
    case Format::kNpz:
      return NpzNames(file.bytes(), file.path());
    case Format::kCsv:
      return CsvNames(file.bytes(), file.path());
    case Format::kBin:
      return BinNames(file);
    case Format::kUnknown:
      return UnknownFormat(file.path());
    case Format::kSafetensors: {
      ASSIGN_OR_RETURN(const SafetensorsHeader header, ParseSafetensorsHeader(file.bytes(), file.path()));
      std::vector<std::string> names;
      for (const SafetensorsEntry& entry : header.entries) names.push_back(entry.name);
      return names;
    }
    default:
      return std::vector<std::string>{""};
  }
}

StatusOr<Array> OpenTokens(FileContents file) {
  ASSIGN_OR_RETURN(const TokenLayout layout, ParseTokenLayout(file.bytes(), file.path()));
  return Array(std::move(file), layout.data_offset, TensorType{layout.dtype, {layout.tokens}});
}

StatusOr<Array> OpenNpy(FileContents file, DType void_type) {
  ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(file.bytes(), file.path(), void_type));
  const size_t found = file.bytes().size() - header.data_offset;
  if (!header.plain() || header.type.dtype == DType::kBool || found != header.type.bytes()) {
    ASSIGN_OR_RETURN(Tensor tensor, ParseNpy(file.bytes(), file.path(), void_type));
    return Array(std::move(tensor));
  }
  return Array(std::move(file), header.data_offset, header.type);
}

StatusOr<Array> OpenEntry(FileContents file, Format format, const std::string& entry, DType void_type) {
  switch (format) {
    case Format::kNpz:
      return OpenNpzArray(std::move(file), entry, void_type);
    case Format::kSafetensors:
      return OpenSafetensorsArray(std::move(file), entry);
    case Format::kBin:
      if (entry.empty() || entry == "tokens") return OpenTokens(std::move(file));
      return OpenCifar(std::move(file), entry);
    case Format::kCsv: {
      ASSIGN_OR_RETURN(Tensor tensor, ParseCsv(file.bytes(), file.path(), entry));
      return Array(std::move(tensor));
    }
    case Format::kNpy:
      return OpenNpy(std::move(file), void_type);
    case Format::kIdx:
      return OpenIdx(std::move(file));
    default:
      return UnknownFormat(file.path());
  }
}

StatusOr<Tensor> ReadProto(const std::string& path, const ArrayFileOptions& options) {
  if (!options.tensor_proto_reader) return InvalidDataError("'" + path + "': TensorProto files are not readable here");
  return options.tensor_proto_reader(path);
}

// The N of "input_N.pb".
std::optional<int64_t> InputNumber(const std::string& name) {
  constexpr std::string_view kPrefix = "input_";
  constexpr std::string_view kSuffix = ".pb";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() <= kPrefix.size() + kSuffix.size()) {
    return std::nullopt;
  }
  int64_t number = 0;
  const char* end = name.data() + name.size() - kSuffix.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, number);
  if (error != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

StatusOr<std::vector<std::string>> FolderNames(const std::string& folder) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (const auto number = InputNumber(name)) found.emplace_back(*number, name.substr(0, name.size() - 3));
  }
  if (error) return InvalidDataError("cannot read folder '" + folder + "': " + error.message());
  if (found.empty()) return InvalidDataError("folder '" + folder + "' has no input_0.pb");
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].first != static_cast<int64_t>(i)) {
      return InvalidDataError("folder '" + folder + "' has no input_" + std::to_string(i) + ".pb, but " +
                              found[i].second + ".pb");
    }
    names.push_back(found[i].second);
  }
  return names;
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

}  // namespace

ArrayPath SplitArrayPath(const std::string& text) {
  std::error_code error;
  const size_t hash = text.find('#');
  if (hash == std::string::npos || std::filesystem::exists(text, error)) return {text, ""};
  // An entry may hold '#' too, so the file is the shortest prefix that exists, else what is before the first '#'.
  for (size_t at = hash; at != std::string::npos; at = text.find('#', at + 1)) {
    if (std::filesystem::exists(text.substr(0, at), error)) return {text.substr(0, at), text.substr(at + 1)};
  }
  return {text.substr(0, hash), text.substr(hash + 1)};
}

StatusOr<Array> OpenArrayFile(const std::string& path_with_entry, const ArrayFileOptions& options) {
  const ArrayPath path = SplitArrayPath(path_with_entry);
  if (IsFolder(path.file)) {
    ASSIGN_OR_RETURN(const auto names, FolderNames(path.file));
    const std::string entry = path.entry.empty() && names.size() == 1 ? names[0] : path.entry;
    if (std::find(names.begin(), names.end(), entry) == names.end()) {
      return InvalidDataError("pick an array of folder '" + path.file + "' with #: " + Join(names));
    }
    ASSIGN_OR_RETURN(Tensor tensor, ReadProto(path.file + "/" + entry + ".pb", options));
    return Array(std::move(tensor));
  }
  ASSIGN_OR_RETURN(FileContents file, FileContents::Open(path.file));
  const Format format = FormatOf(file);
  if (format == Format::kTensorProto) {
    if (!path.entry.empty()) return NoEntries(path.file, path.entry);
    ASSIGN_OR_RETURN(Tensor tensor, ReadProto(path.file, options));
    return Array(std::move(tensor));
  }
  if (!path.entry.empty() && (format == Format::kNpy || format == Format::kIdx)) {
    return NoEntries(path.file, path.entry);
  }
  std::string entry = path.entry;
  if (entry.empty() && format != Format::kCsv) {
    ASSIGN_OR_RETURN(const auto names, Names(file, format));
    if (names.size() != 1) {
      return InvalidDataError("'" + path.file + "' holds " + std::to_string(names.size()) + " arrays; pick one with '" +
                              path.file + "#NAME': " + Join(names));
    }
    entry = names[0];
  }
  return OpenEntry(std::move(file), format, entry, options.void_type);
}

StatusOr<Tensor> ReadArrayFile(const std::string& path_with_entry, const ArrayFileOptions& options) {
  ASSIGN_OR_RETURN(Array array, OpenArrayFile(path_with_entry, options));
  return std::move(array).ToTensor();
}

StatusOr<std::vector<std::string>> ListArrayFile(const std::string& path) {
  if (IsFolder(path)) return FolderNames(path);
  ASSIGN_OR_RETURN(const FileContents file, FileContents::Open(path));
  return Names(file, FormatOf(file));
}

StatusOr<std::vector<NamedTensor>> ReadNamedArrays(const std::string& path, const ArrayFileOptions& options) {
  if (IsFolder(path)) {
    ASSIGN_OR_RETURN(const auto names, FolderNames(path));
    std::vector<NamedTensor> tensors;
    for (const std::string& name : names) {
      ASSIGN_OR_RETURN(Tensor tensor, ReadProto(path + "/" + name + ".pb", options));
      tensors.emplace_back(name, std::move(tensor));
    }
    return tensors;
  }
  ASSIGN_OR_RETURN(const FileContents file, FileContents::Open(path));
  const Format format = FormatOf(file);
  if (format == Format::kNpz) return ParseNpz(file.bytes(), path, options.void_type);
  if (format == Format::kSafetensors) return ParseSafetensors(file.bytes(), path);
  return InvalidDataError("'" + path + "' does not name its arrays; give NAME=" + path + ", or an npz or safetensors");
}

}  // namespace onnxtrain
