// SPDX-License-Identifier: Apache-2.0
// The bytes of a regular file, read-only: mapped when large, read into memory when small.
#ifndef ONNXTRAIN_RUNTIME_DATA_FILE_CONTENTS_H_
#define ONNXTRAIN_RUNTIME_DATA_FILE_CONTENTS_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "graph/status.h"

namespace onnxtrain {

// Move-only owner. The file must not be shortened while a FileContents exists. Reading from any thread is fine.
class FileContents {
 public:
  // kInvalidData when the file is missing, unreadable, or not a regular file.
  static StatusOr<FileContents> Open(const std::string& path);

  FileContents(FileContents&& other) noexcept;
  FileContents& operator=(FileContents&& other) noexcept;
  ~FileContents();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  FileContents() = default;
  void Swap(FileContents& other) noexcept;

  std::string path_;
  std::vector<std::byte> copy_;  // of a small file
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
};

// Paths that match a shell pattern (* ? [..]), sorted by bytes. A pattern that matches nothing is kUsage;
// a text without wildcards is returned as it is, whether the file exists or not.
StatusOr<std::vector<std::string>> MatchFiles(const std::string& pattern);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_FILE_CONTENTS_H_
