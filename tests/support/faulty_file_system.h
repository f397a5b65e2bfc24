// SPDX-License-Identifier: Apache-2.0
// The real file system, with one failure at a chosen operation.
#ifndef ONNXTRAIN_TESTS_SUPPORT_FAULTY_FILE_SYSTEM_H_
#define ONNXTRAIN_TESTS_SUPPORT_FAULTY_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/file_system.h"

namespace onnxtrain {

enum class Fault : uint8_t {
  kNone,
  kError,     // the operation fails once (kInternal); a write has written half before
  kDiskFull,  // the operation fails (kResourceExhausted), and every later write too; a write has written half before
  kEnd,       // the process ends there: the operation has half happened, nothing later does
};

// Counts writes, syncs, closes, creations, renames, removals and folder syncs as they come. Every write is short: at
// most `write_limit` bytes.
class FaultyFileSystem final : public FileSystem {
 public:
  FaultyFileSystem(Fault fault, int64_t at, size_t write_limit = 4096) : state_{fault, at, write_limit, 0, false} {}

  // Operations so far; the fault has happened when it is above `at`.
  int64_t operations() const { return state_.operations; }

  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path) override;
  Status CreateFolders(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status SyncFolder(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  bool Exists(const std::string& path) override;

  struct State {
    Fault fault;
    int64_t at;
    size_t write_limit;
    int64_t operations;
    bool broken;

    // Counts one operation; the error it meets, if any. `half` is set where half of it is to happen first.
    Status Meet(const std::string& what, bool is_write, bool* half);
  };

 private:
  StatusOr<std::unique_ptr<WritableFile>> Wrap(StatusOr<std::unique_ptr<WritableFile>> file, const std::string& path);

  PosixFileSystem real_;
  State state_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_FAULTY_FILE_SYSTEM_H_
