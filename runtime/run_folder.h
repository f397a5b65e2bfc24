// SPDX-License-Identifier: Apache-2.0
// A run folder belongs to one process at a time.
#ifndef ONNXTRAIN_RUNTIME_RUN_FOLDER_H_
#define ONNXTRAIN_RUNTIME_RUN_FOLDER_H_

#include <string>

#include "graph/status.h"

namespace onnxtrain {

// Holds an advisory lock (flock on FOLDER/.lock) until destroyed or the process ends, however it ends. Move-only.
class RunFolderLock {
 public:
  // The folder must exist. kUsage when another process, or another lock of this one, holds it; its process id is named.
  // kInternal when the file cannot be made.
  static StatusOr<RunFolderLock> Acquire(const std::string& folder);

  RunFolderLock(RunFolderLock&& other) noexcept;
  RunFolderLock& operator=(RunFolderLock&& other) noexcept;
  ~RunFolderLock();

 private:
  explicit RunFolderLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_RUN_FOLDER_H_
