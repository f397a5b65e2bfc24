// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/npz.h"

#include <cstring>
#include <unordered_set>

#include "runtime/data/byte_reader.h"
#include "runtime/data/inflate.h"
#include "runtime/data/npy.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kSuffix = ".npy";

bool IsArray(const ZipEntry& entry) { return entry.name.ends_with(kSuffix); }

std::string ArrayName(const ZipEntry& entry) { return entry.name.substr(0, entry.name.size() - kSuffix.size()); }

std::string Where(std::string_view file, const ZipEntry& entry) { return std::string(file) + "#" + ArrayName(entry); }

Status CheckElementBytes(const NpyHeader& header, const ZipEntry& entry, std::string_view where) {
  const uint64_t found = entry.bytes - header.data_offset;
  if (found == header.type.bytes()) return OkStatus();
  return DataErrorAt(where, header.data_offset,
                     ToString(header.type) + " needs " + std::to_string(header.type.bytes()) + " bytes, found " +
                         std::to_string(found));
}

Status CheckCrc(const ZipEntry& entry, uint32_t found, std::string_view file) {
  if (found == entry.crc) return OkStatus();
  return DataErrorAt(file, entry.data_offset,
                     "the checksum of entry '" + entry.name + "' is wrong; the file is damaged");
}

StatusOr<Tensor> InflateEntry(std::span<const std::byte> compressed, std::string_view file, const ZipEntry& entry,
                              DType void_type) {
  const std::string where = Where(file, entry);
  InflateStream stream(InflateStream::Format::kRaw, compressed, file, entry.data_offset);
  if (entry.bytes < kNpyPrefixBytes) return DataErrorAt(where, 0, "too short for an npy array");
  std::vector<std::byte> head(kNpyPrefixBytes);
  RETURN_IF_ERROR(stream.Read(head));
  ASSIGN_OR_RETURN(const size_t data_offset, NpyDataOffset(head, where));
  if (data_offset < kNpyPrefixBytes || data_offset > entry.bytes) {
    return DataErrorAt(where, kNpyPrefixBytes, "the entry ends inside the npy header");
  }
  head.resize(data_offset);
  RETURN_IF_ERROR(stream.Read(std::span(head).subspan(kNpyPrefixBytes)));
  ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(head, where, void_type));
  RETURN_IF_ERROR(CheckElementBytes(header, entry, where));
  uint32_t crc = Crc32(head);
  ASSIGN_OR_RETURN(Tensor tensor, ReadNpyElements(header, where, [&](std::span<std::byte> out) {
                     RETURN_IF_ERROR(stream.Read(out));
                     crc = Crc32(out, crc);
                     return OkStatus();
                   }));
  RETURN_IF_ERROR(stream.ExpectEnd());
  RETURN_IF_ERROR(CheckCrc(entry, crc, file));
  return tensor;
}

std::string ListNames(const std::vector<ZipEntry>& entries) {
  constexpr size_t kMost = 20;
  std::string list;
  size_t count = 0;
  for (const ZipEntry& entry : entries) {
    if (!IsArray(entry)) continue;
    if (++count > kMost) return list + ", ...";
    list += (list.empty() ? "" : ", ") + ArrayName(entry);
  }
  return list.empty() ? "none" : list;
}

}  // namespace

StatusOr<std::vector<std::string>> NpzNames(std::span<const std::byte> bytes, std::string_view file) {
  ASSIGN_OR_RETURN(const auto entries, ParseZipDirectory(bytes, file));
  std::vector<std::string> names;
  for (const ZipEntry& entry : entries) {
    if (IsArray(entry)) names.push_back(ArrayName(entry));
  }
  return names;
}

StatusOr<Tensor> ParseNpzEntry(std::span<const std::byte> bytes, std::string_view file, const ZipEntry& entry,
                               DType void_type) {
  const auto data = bytes.subspan(entry.data_offset, entry.compressed_bytes);
  if (entry.deflated) return InflateEntry(data, file, entry, void_type);
  RETURN_IF_ERROR(CheckCrc(entry, Crc32(data), file));
  return ParseNpy(data, Where(file, entry), void_type);
}

StatusOr<std::vector<NamedTensor>> ParseNpz(std::span<const std::byte> bytes, std::string_view file, DType void_type) {
  ASSIGN_OR_RETURN(const auto entries, ParseZipDirectory(bytes, file));
  std::vector<NamedTensor> tensors;
  for (const ZipEntry& entry : entries) {
    if (!IsArray(entry)) continue;
    ASSIGN_OR_RETURN(Tensor tensor, ParseNpzEntry(bytes, file, entry, void_type));
    tensors.emplace_back(ArrayName(entry), std::move(tensor));
  }
  return tensors;
}

StatusOr<Array> OpenNpzArray(FileContents file, const std::string& name, DType void_type) {
  const auto bytes = file.bytes();
  ASSIGN_OR_RETURN(const auto entries, ParseZipDirectory(bytes, file.path()));
  for (const ZipEntry& entry : entries) {
    if (!IsArray(entry) || ArrayName(entry) != name) continue;
    const auto data = bytes.subspan(entry.data_offset, entry.compressed_bytes);
    if (!entry.deflated) {
      const std::string where = Where(file.path(), entry);
      ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(data, where, void_type));
      if (header.plain()) {
        RETURN_IF_ERROR(CheckElementBytes(header, entry, where));
        RETURN_IF_ERROR(CheckCrc(entry, Crc32(data), file.path()));
        RETURN_IF_ERROR(CheckBools(header.type.dtype, data.subspan(header.data_offset), where, header.data_offset));
        return Array(std::move(file), entry.data_offset + header.data_offset, header.type);
      }
    }
    ASSIGN_OR_RETURN(Tensor tensor, ParseNpzEntry(bytes, file.path(), entry, void_type));
    return Array(std::move(tensor));
  }
  return InvalidDataError("'" + file.path() + "' has no array '" + name + "'; it has: " + ListNames(entries));
}

StatusOr<std::vector<NamedTensor>> ReadNpz(const std::string& path, DType void_type) {
  ASSIGN_OR_RETURN(const FileContents file, FileContents::Open(path));
  return ParseNpz(file.bytes(), path, void_type);
}

Status WriteNpz(FileSystem& files, const std::string& path,
                std::span<const std::pair<std::string, const Tensor*>> tensors, const NpzOptions& options) {
  std::unordered_set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second) return InternalError("'" + path + "': two arrays have the name '" + name + "'");
  }
  return WriteFileAtomically(files, path, [&](WritableFile& file) {
    ZipWriter writer(&file, options.always_zip64);
    for (const auto& [name, tensor] : tensors) {
      const std::string header = NpyHeaderFor(tensor->type());
      const std::span<const std::byte> elements(tensor->data(), tensor->bytes());
      const uint32_t crc = Crc32(elements, Crc32(std::as_bytes(std::span<const char>(header))));
      RETURN_IF_ERROR(writer.Begin(name + std::string(kSuffix), header.size() + elements.size(), crc));
      RETURN_IF_ERROR(file.Append(header));
      RETURN_IF_ERROR(file.Append(elements));
    }
    return writer.Finish();
  });
}

Status WriteNpz(FileSystem& files, const std::string& path, std::span<const NamedTensor> tensors,
                const NpzOptions& options) {
  std::vector<std::pair<std::string, const Tensor*>> borrowed;
  for (const NamedTensor& tensor : tensors) borrowed.emplace_back(tensor.first, &tensor.second);
  return WriteNpz(files, path, std::span<const std::pair<std::string, const Tensor*>>(borrowed), options);
}

}  // namespace onnxtrain
