// SPDX-License-Identifier: Apache-2.0
// Everything this project writes goes through a FileSystem, so that a test can make the n-th write, sync or rename
// fail. Disk full and quota are kResourceExhausted, every other failure of the system is kInternal; both name the path.
// Paths are used as given; nothing here is global. Calls on different objects may run on different threads.
#ifndef ONNXTRAIN_RUNTIME_FILE_SYSTEM_H_
#define ONNXTRAIN_RUNTIME_FILE_SYSTEM_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace onnxtrain {

// A file open for writing at its end. Destroying it closes it without reporting; call Close to learn of a late error.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Writes all of `bytes`, repeating short writes. After an error the length of the file is unknown.
  Status Append(std::span<const std::byte> bytes);
  Status Append(std::string_view text);
  // Returns when the content has reached the storage device (fsync).
  virtual Status Sync() = 0;
  virtual Status Close() = 0;

 protected:
  // Writes at least one byte and returns how many.
  virtual StatusOr<size_t> WriteSome(std::span<const std::byte> bytes) = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // A new empty file; an existing one is emptied.
  virtual StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // An existing or new file, written at its end.
  virtual StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) = 0;
  // The folder and the missing ones above it; existing ones are fine.
  virtual Status CreateFolders(const std::string& path) = 0;
  // Atomic within one file system. A file at `to` is replaced; a folder there must be empty.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // Files and whole folders; a missing one is no error.
  virtual Status Remove(const std::string& path) = 0;
  // Makes the names in a folder durable (fsync of the folder).
  virtual Status SyncFolder(const std::string& path) = 0;
  // Names in the folder, sorted by bytes. A missing folder is an empty list.
  virtual StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  virtual bool Exists(const std::string& path) = 0;
};

// The real one. Has no state: make one wherever it is needed.
class PosixFileSystem final : public FileSystem {
 public:
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override;
  Status CreateFolders(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status SyncFolder(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  bool Exists(const std::string& path) override;
};

// Writes `path` so that it appears whole or not at all: into "PATH.incomplete", synced, renamed, folder synced.
// `write` fills the file. After an error the file of before is untouched and the temporary one is removed.
Status WriteFileAtomically(FileSystem& files, const std::string& path,
                           const std::function<Status(WritableFile&)>& write);

// The folder that holds `path`; "." for a bare name.
std::string ParentFolder(const std::string& path);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_FILE_SYSTEM_H_
