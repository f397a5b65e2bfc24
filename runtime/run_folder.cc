// SPDX-License-Identifier: Apache-2.0
#include "runtime/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace onnxtrain {
namespace {

std::string HolderOf(int descriptor) {
  char text[32] = {};
  const ssize_t count = ::pread(descriptor, text, sizeof(text) - 1, 0);
  std::string holder(text, count > 0 ? static_cast<size_t>(count) : 0);
  holder.resize(holder.find_first_not_of("0123456789") == std::string::npos ? holder.size()
                                                                            : holder.find_first_not_of("0123456789"));
  return holder.empty() ? "another process" : "process " + holder;
}

}  // namespace

StatusOr<RunFolderLock> RunFolderLock::Acquire(const std::string& folder) {
  const std::string path = folder + "/.lock";
  RunFolderLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (lock.descriptor_ < 0) return InternalError("cannot create '" + path + "': " + std::strerror(errno));
  if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return UsageError("run folder '" + folder + "' is in use by " + HolderOf(lock.descriptor_) +
                        "; wait for it or choose another --out");
    }
    return InternalError("cannot lock '" + path + "': " + std::strerror(errno));
  }
  // For the message of whoever comes second; the lock itself does not need it.
  const std::string holder = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock.descriptor_, 0) != 0 ||
      ::pwrite(lock.descriptor_, holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size())) {
    return InternalError("cannot write '" + path + "': " + std::strerror(errno));
  }
  return lock;
}

RunFolderLock::RunFolderLock(RunFolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

RunFolderLock& RunFolderLock::operator=(RunFolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

RunFolderLock::~RunFolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace onnxtrain
