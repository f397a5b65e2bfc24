// SPDX-License-Identifier: Apache-2.0
// ZIP archives as .npz files use them: stored and deflated entries, zip64. Encrypted, split and overlapping ones are
// refused. Written entries are stored.
#ifndef ONNXTRAIN_RUNTIME_DATA_ZIP_H_
#define ONNXTRAIN_RUNTIME_DATA_ZIP_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "runtime/file_system.h"

namespace onnxtrain {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  uint64_t header_offset = 0;
  uint64_t data_offset = 0;  // data_offset + compressed_bytes lies inside the file
  uint64_t compressed_bytes = 0;
  uint64_t bytes = 0;  // after decompression; not yet verified, but possible
};

// The entries in the order of the directory; names are unique. Checks all that can be checked without decompressing.
StatusOr<std::vector<ZipEntry>> ParseZipDirectory(std::span<const std::byte> bytes, std::string_view file);

// Writes stored entries one after the other. Usage: for each entry Begin, then exactly `bytes` bytes to the file
// itself, at last Finish.
class ZipWriter {
 public:
  // Borrows `file`. `always_zip64` uses the large form even where the small one would do.
  explicit ZipWriter(WritableFile* file, bool always_zip64 = false) : file_(file), always_zip64_(always_zip64) {}
  Status Begin(const std::string& name, uint64_t bytes, uint32_t crc);
  Status Finish();

 private:
  struct Written {
    std::string name;
    uint64_t bytes;
    uint32_t crc;
    uint64_t offset;
  };
  void AppendDirectoryEntry(std::string& out, const Written& entry) const;
  bool NeedsZip64(const Written& entry) const;
  void AppendEnd(std::string& out, uint64_t directory_bytes) const;

  WritableFile* file_;
  bool always_zip64_;
  uint64_t offset_ = 0;
  std::vector<Written> entries_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_ZIP_H_
