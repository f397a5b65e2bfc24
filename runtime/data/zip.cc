// SPDX-License-Identifier: Apache-2.0
// Layout and names of the fields: PKWARE's APPNOTE 6.3.9, sections 4.3 and 4.5.
#include "runtime/data/zip.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "runtime/data/byte_reader.h"
#include "runtime/data/inflate.h"

namespace onnxtrain {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kLocatorBytes = 20;
constexpr uint64_t kLongestComment = 65535;
constexpr uint32_t kIn64 = 0xffffffff;
constexpr uint16_t kIn64Short = 0xffff;
constexpr uint16_t kZip64Extra = 1;
constexpr uint16_t kUtf8Flag = 1 << 11;
constexpr uint16_t kDate1980 = (1 << 5) | 1;  // the first day the format knows: equal input, equal bytes

struct Directory {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;
};

StatusOr<uint64_t> FindEnd(std::span<const std::byte> bytes, std::string_view file) {
  if (bytes.size() < kEndBytes) return DataErrorAt(file, 0, "too short for a zip archive");
  const uint64_t last = bytes.size() - kEndBytes;
  const uint64_t first = last > kLongestComment ? last - kLongestComment : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    ByteReader reader(bytes.subspan(at), file);
    if (*reader.Little32("the zip end record") != kEndSignature) continue;
    ByteReader comment(bytes.subspan(at + 20), file);
    if (*comment.Little16("the zip comment length") == last - at) return at;
  }
  return DataErrorAt(file, last, "no end of a zip archive; the file is cut off or not an .npz");
}

StatusOr<Directory> ParseEnd64(std::span<const std::byte> bytes, std::string_view file, uint64_t end) {
  ByteReader reader(bytes.first(end), file);
  if (end < kLocatorBytes) return DataErrorAt(file, 0, "the zip64 locator is missing");
  RETURN_IF_ERROR(reader.Seek(end - kLocatorBytes, "the zip64 locator"));
  ASSIGN_OR_RETURN(const uint32_t locator, reader.Little32("the zip64 locator"));
  if (locator != kLocator64Signature) return reader.Error("the zip64 locator is missing");
  RETURN_IF_ERROR(reader.Bytes(4, "the zip64 locator").status());
  ASSIGN_OR_RETURN(const uint64_t offset, reader.Little64("the zip64 locator"));
  RETURN_IF_ERROR(reader.Seek(offset, "the zip64 end record"));
  ASSIGN_OR_RETURN(const uint32_t signature, reader.Little32("the zip64 end record"));
  if (signature != kEnd64Signature) return reader.Error("the zip64 end record is missing");
  RETURN_IF_ERROR(reader.Bytes(28, "the zip64 end record").status());
  Directory directory;
  ASSIGN_OR_RETURN(directory.entries, reader.Little64("the number of entries"));
  ASSIGN_OR_RETURN(directory.bytes, reader.Little64("the directory size"));
  ASSIGN_OR_RETURN(directory.offset, reader.Little64("the directory offset"));
  return directory;
}

StatusOr<Directory> FindDirectory(std::span<const std::byte> bytes, std::string_view file) {
  ASSIGN_OR_RETURN(const uint64_t end, FindEnd(bytes, file));
  ByteReader reader(bytes, file);
  RETURN_IF_ERROR(reader.Seek(end + 4, "the zip end record"));
  ASSIGN_OR_RETURN(const uint16_t disk, reader.Little16("the disk number"));
  ASSIGN_OR_RETURN(const uint16_t first_disk, reader.Little16("the disk number"));
  RETURN_IF_ERROR(reader.Little16("the number of entries").status());
  Directory directory;
  ASSIGN_OR_RETURN(directory.entries, reader.Little16("the number of entries"));
  ASSIGN_OR_RETURN(directory.bytes, reader.Little32("the directory size"));
  ASSIGN_OR_RETURN(directory.offset, reader.Little32("the directory offset"));
  const bool zip64 = directory.entries == kIn64Short || directory.bytes == kIn64 || directory.offset == kIn64;
  if (!zip64 && (disk != 0 || first_disk != 0)) return reader.Error("archives split over disks are not supported");
  if (zip64) {
    ASSIGN_OR_RETURN(directory, ParseEnd64(bytes, file, end));
  }
  if (directory.offset > end || directory.bytes > end - directory.offset) {
    return DataErrorAt(file, end,
                       "the zip directory (" + std::to_string(directory.bytes) + " bytes at " +
                           std::to_string(directory.offset) + ") does not lie inside the file");
  }
  return directory;
}

// The zip64 field of a directory entry holds, in this order, those of the three values that did not fit.
Status ApplyExtra(std::span<const std::byte> extra, uint64_t at, std::string_view file, ZipEntry& entry) {
  ByteReader reader(extra, file);
  while (reader.remaining() >= 4) {
    ASSIGN_OR_RETURN(const uint16_t id, reader.Little16("an extra field"));
    ASSIGN_OR_RETURN(const uint16_t size, reader.Little16("an extra field"));
    if (size > reader.remaining()) return DataErrorAt(file, at + reader.offset(), "a zip extra field is cut off");
    ASSIGN_OR_RETURN(const auto field_bytes, reader.Bytes(size, "an extra field"));
    if (id != kZip64Extra) continue;
    ByteReader field(field_bytes, file);
    for (uint64_t* value : {&entry.bytes, &entry.compressed_bytes, &entry.header_offset}) {
      if (*value != kIn64) continue;
      if (field.remaining() < 8) return DataErrorAt(file, at + reader.offset(), "a zip64 field is cut off");
      ASSIGN_OR_RETURN(*value, field.Little64("a zip64 field"));
    }
  }
  return OkStatus();
}

StatusOr<ZipEntry> ParseEntry(ByteReader& reader, std::string_view file) {
  const uint64_t start = reader.offset();
  ASSIGN_OR_RETURN(const uint32_t signature, reader.Little32("a zip directory entry"));
  if (signature != kEntrySignature) return DataErrorAt(file, start, "not a zip directory entry");
  RETURN_IF_ERROR(reader.Bytes(4, "a zip directory entry").status());
  ASSIGN_OR_RETURN(const uint16_t flags, reader.Little16("the flags"));
  ASSIGN_OR_RETURN(const uint16_t method, reader.Little16("the compression method"));
  RETURN_IF_ERROR(reader.Little32("the time").status());
  ZipEntry entry;
  ASSIGN_OR_RETURN(entry.crc, reader.Little32("the checksum"));
  ASSIGN_OR_RETURN(entry.compressed_bytes, reader.Little32("the compressed size"));
  ASSIGN_OR_RETURN(entry.bytes, reader.Little32("the size"));
  ASSIGN_OR_RETURN(const uint16_t name_bytes, reader.Little16("the name length"));
  ASSIGN_OR_RETURN(const uint16_t extra_bytes, reader.Little16("the extra length"));
  ASSIGN_OR_RETURN(const uint16_t comment_bytes, reader.Little16("the comment length"));
  RETURN_IF_ERROR(reader.Bytes(8, "a zip directory entry").status());
  ASSIGN_OR_RETURN(entry.header_offset, reader.Little32("the local header offset"));
  ASSIGN_OR_RETURN(const auto name, reader.Bytes(name_bytes, "the name of a zip entry"));
  entry.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  const uint64_t extra_offset = reader.offset();
  ASSIGN_OR_RETURN(const auto extra, reader.Bytes(extra_bytes, "an extra field"));
  RETURN_IF_ERROR(reader.Bytes(comment_bytes, "a comment").status());
  RETURN_IF_ERROR(ApplyExtra(extra, extra_offset, file, entry));
  if ((flags & 1) != 0) return DataErrorAt(file, start, "entry '" + entry.name + "' is encrypted");
  if (method != 0 && method != 8) {
    return DataErrorAt(file, start,
                       "entry '" + entry.name + "' has compression method " + std::to_string(method) +
                           "; stored (0) and deflate (8) are supported");
  }
  entry.deflated = method == 8;
  return entry;
}

Status CheckSizes(const ZipEntry& entry, std::string_view file) {
  const bool possible =
      entry.deflated ? entry.bytes <= MostInflated(entry.compressed_bytes) : entry.bytes == entry.compressed_bytes;
  if (possible) return OkStatus();
  return DataErrorAt(file, entry.header_offset,
                     "entry '" + entry.name + "': " + std::to_string(entry.compressed_bytes) +
                         " bytes cannot hold the " + std::to_string(entry.bytes) + " bytes the directory says");
}

Status LocateData(std::span<const std::byte> before_directory, std::string_view file, ZipEntry& entry) {
  ByteReader reader(before_directory, file);
  RETURN_IF_ERROR(reader.Seek(entry.header_offset, "the local header of '" + entry.name + "'"));
  ASSIGN_OR_RETURN(const uint32_t signature, reader.Little32("a local zip header"));
  if (signature != kLocalSignature) {
    return DataErrorAt(file, entry.header_offset, "no local zip header for entry '" + entry.name + "'");
  }
  RETURN_IF_ERROR(reader.Bytes(22, "a local zip header").status());
  ASSIGN_OR_RETURN(const uint16_t name_bytes, reader.Little16("the name length"));
  ASSIGN_OR_RETURN(const uint16_t extra_bytes, reader.Little16("the extra length"));
  RETURN_IF_ERROR(reader.Bytes(uint64_t{name_bytes} + extra_bytes, "a local zip header").status());
  entry.data_offset = reader.offset();
  RETURN_IF_ERROR(reader.Bytes(entry.compressed_bytes, "the data of entry '" + entry.name + "'").status());
  return OkStatus();
}

Status CheckUniqueAndApart(const std::vector<ZipEntry>& entries, std::string_view file) {
  std::unordered_set<std::string_view> names;
  std::vector<const ZipEntry*> by_offset;
  for (const ZipEntry& entry : entries) {
    if (!names.insert(entry.name).second) {
      return DataErrorAt(file, entry.header_offset, "two entries have the name '" + entry.name + "'");
    }
    by_offset.push_back(&entry);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const ZipEntry* a, const ZipEntry* b) { return a->header_offset < b->header_offset; });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    if (by_offset[i - 1]->data_offset + by_offset[i - 1]->compressed_bytes > by_offset[i]->header_offset) {
      return DataErrorAt(file, by_offset[i]->header_offset,
                         "entries '" + by_offset[i - 1]->name + "' and '" + by_offset[i]->name + "' overlap");
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<ZipEntry>> ParseZipDirectory(std::span<const std::byte> bytes, std::string_view file) {
  ASSIGN_OR_RETURN(const Directory directory, FindDirectory(bytes, file));
  ByteReader reader(bytes.first(directory.offset + directory.bytes), file);
  RETURN_IF_ERROR(reader.Seek(directory.offset, "the zip directory"));
  std::vector<ZipEntry> entries;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    ASSIGN_OR_RETURN(ZipEntry entry, ParseEntry(reader, file));
    RETURN_IF_ERROR(CheckSizes(entry, file));
    RETURN_IF_ERROR(LocateData(bytes.first(directory.offset), file, entry));
    entries.push_back(std::move(entry));
  }
  if (reader.remaining() != 0) return reader.Error("bytes after the last zip directory entry");
  RETURN_IF_ERROR(CheckUniqueAndApart(entries, file));
  return entries;
}

bool ZipWriter::NeedsZip64(const Written& entry) const {
  return always_zip64_ || entry.bytes >= kIn64 || entry.offset >= kIn64;
}

Status ZipWriter::Begin(const std::string& name, uint64_t bytes, uint32_t crc) {
  if (name.size() > kLongestComment) return InternalError("a zip entry name has at most 65535 bytes: '" + name + "'");
  const Written entry{name, bytes, crc, offset_};
  const bool zip64 = NeedsZip64(entry);
  std::string header;
  AppendLittle(header, kLocalSignature, 4);
  AppendLittle(header, zip64 ? 45 : 20, 2);  // version needed
  AppendLittle(header, kUtf8Flag, 2);
  AppendLittle(header, 0, 2);  // stored
  AppendLittle(header, 0, 2);  // time
  AppendLittle(header, kDate1980, 2);
  AppendLittle(header, crc, 4);
  AppendLittle(header, zip64 ? kIn64 : bytes, 4);
  AppendLittle(header, zip64 ? kIn64 : bytes, 4);
  AppendLittle(header, name.size(), 2);
  AppendLittle(header, zip64 ? 20 : 0, 2);
  header += name;
  if (zip64) {
    AppendLittle(header, kZip64Extra, 2);
    AppendLittle(header, 16, 2);
    AppendLittle(header, bytes, 8);
    AppendLittle(header, bytes, 8);
  }
  offset_ += header.size() + bytes;
  entries_.push_back(entry);
  return file_->Append(header);
}

void ZipWriter::AppendDirectoryEntry(std::string& out, const Written& entry) const {
  const bool zip64 = NeedsZip64(entry);
  AppendLittle(out, kEntrySignature, 4);
  AppendLittle(out, zip64 ? 45 : 20, 2);
  AppendLittle(out, zip64 ? 45 : 20, 2);
  AppendLittle(out, kUtf8Flag, 2);
  AppendLittle(out, 0, 2);
  AppendLittle(out, 0, 2);
  AppendLittle(out, kDate1980, 2);
  AppendLittle(out, entry.crc, 4);
  AppendLittle(out, zip64 ? kIn64 : entry.bytes, 4);
  AppendLittle(out, zip64 ? kIn64 : entry.bytes, 4);
  AppendLittle(out, entry.name.size(), 2);
  AppendLittle(out, zip64 ? 28 : 0, 2);
  AppendLittle(out, 0, 2);  // comment
  AppendLittle(out, 0, 2);  // disk
  AppendLittle(out, 0, 2);  // internal attributes
  AppendLittle(out, 0, 4);  // external attributes
  AppendLittle(out, zip64 ? kIn64 : entry.offset, 4);
  out += entry.name;
  if (!zip64) return;
  AppendLittle(out, kZip64Extra, 2);
  AppendLittle(out, 24, 2);
  AppendLittle(out, entry.bytes, 8);
  AppendLittle(out, entry.bytes, 8);
  AppendLittle(out, entry.offset, 8);
}

void ZipWriter::AppendEnd(std::string& out, uint64_t directory_bytes) const {
  const bool zip64 = always_zip64_ || offset_ >= kIn64 || directory_bytes >= kIn64 || entries_.size() >= kIn64Short;
  if (zip64) {
    AppendLittle(out, kEnd64Signature, 4);
    AppendLittle(out, 44, 8);  // what remains of this record
    AppendLittle(out, 45, 2);
    AppendLittle(out, 45, 2);
    AppendLittle(out, 0, 8);  // disks
    AppendLittle(out, entries_.size(), 8);
    AppendLittle(out, entries_.size(), 8);
    AppendLittle(out, directory_bytes, 8);
    AppendLittle(out, offset_, 8);
    AppendLittle(out, kLocator64Signature, 4);
    AppendLittle(out, 0, 4);
    AppendLittle(out, offset_ + directory_bytes, 8);
    AppendLittle(out, 1, 4);  // number of disks
  }
  AppendLittle(out, kEndSignature, 4);
  AppendLittle(out, 0, 4);  // disks
  AppendLittle(out, zip64 ? kIn64Short : entries_.size(), 2);
  AppendLittle(out, zip64 ? kIn64Short : entries_.size(), 2);
  AppendLittle(out, zip64 ? kIn64 : directory_bytes, 4);
  AppendLittle(out, zip64 ? kIn64 : offset_, 4);
  AppendLittle(out, 0, 2);  // comment
}

Status ZipWriter::Finish() {
  std::string directory;
  for (const Written& entry : entries_) AppendDirectoryEntry(directory, entry);
  AppendEnd(directory, directory.size());
  return file_->Append(directory);
}

}  // namespace onnxtrain
