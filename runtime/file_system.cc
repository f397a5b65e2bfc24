// SPDX-License-Identifier: Apache-2.0
#include "runtime/file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace onnxtrain {
namespace {

Status SystemError(std::string_view action, const std::string& path, int error) {
  std::string message = std::string(action) + " '" + path + "': " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return ResourceExhaustedError("disk full: " + std::move(message) + "; free space or choose another folder");
  }
  return InternalError(std::move(message));
}

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~PosixWritableFile() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  Status Sync() override {
    if (::fsync(descriptor_) != 0) return SystemError("cannot sync", path_, errno);
    return OkStatus();
  }

  Status Close() override {
    const int result = ::close(std::exchange(descriptor_, -1));
    if (result != 0) return SystemError("cannot close", path_, errno);
    return OkStatus();
  }

 protected:
  StatusOr<size_t> WriteSome(std::span<const std::byte> bytes) override {
    constexpr size_t kMostAtOnce = size_t{1} << 30;
    while (true) {
      const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMostAtOnce));
      if (written > 0) return static_cast<size_t>(written);
      if (written == 0) return SystemError("cannot write", path_, ENOSPC);
      if (errno != EINTR) return SystemError("cannot write", path_, errno);
    }
  }

 private:
  int descriptor_;
  std::string path_;
};

StatusOr<std::unique_ptr<WritableFile>> OpenWith(const std::string& path, int flags) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
  if (descriptor < 0) return SystemError("cannot create", path, errno);
  return std::unique_ptr<WritableFile>(new PosixWritableFile(descriptor, path));
}

}  // namespace

Status WritableFile::Append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ASSIGN_OR_RETURN(const size_t written, WriteSome(bytes));
    bytes = bytes.subspan(written);
  }
  return OkStatus();
}

Status WritableFile::Append(std::string_view text) {
  return Append(std::as_bytes(std::span<const char>(text.data(), text.size())));
}

StatusOr<std::unique_ptr<WritableFile>> PosixFileSystem::Create(const std::string& path) {
  return OpenWith(path, O_TRUNC);
}

StatusOr<std::unique_ptr<WritableFile>> PosixFileSystem::OpenForAppend(const std::string& path) {
  return OpenWith(path, O_APPEND);
}

Status PosixFileSystem::CreateFolders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return SystemError("cannot create folder", path, error.value());
  if (!std::filesystem::is_directory(path, error)) return SystemError("cannot create folder", path, ENOTDIR);
  return OkStatus();
}

Status PosixFileSystem::Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return SystemError("cannot rename '" + from + "' to", to, errno);
  return OkStatus();
}

Status PosixFileSystem::Remove(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return SystemError("cannot remove", path, error.value());
  return OkStatus();
}

Status PosixFileSystem::SyncFolder(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return SystemError("cannot open folder", path, errno);
  // Some file systems do not sync folders and say EINVAL; their renames are durable by themselves or never.
  const int error = ::fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno;
  ::close(descriptor);
  return error == 0 ? OkStatus() : SystemError("cannot sync folder", path, error);
}

StatusOr<std::vector<std::string>> PosixFileSystem::List(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  if (error.value() == ENOENT) return names;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return SystemError("cannot list folder", folder, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

bool PosixFileSystem::Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

namespace {

Status WriteAndSync(FileSystem& files, const std::string& path, const std::function<Status(WritableFile&)>& write) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(path));
  RETURN_IF_ERROR(write(*file));
  RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

Status WriteFileAtomically(FileSystem& files, const std::string& path,
                           const std::function<Status(WritableFile&)>& write) {
  const std::string temporary = path + ".incomplete";
  Status status = WriteAndSync(files, temporary, write);
  if (status.ok()) status = files.Rename(temporary, path);
  if (!status.ok()) {
    // The first error is the one to report; what remains of the temporary file is replaced by the next attempt.
    (void)files.Remove(temporary);
    return status;
  }
  return files.SyncFolder(ParentFolder(path));
}

std::string ParentFolder(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace onnxtrain
