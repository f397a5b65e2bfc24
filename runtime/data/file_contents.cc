// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/file_contents.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "graph/nearest_name.h"

namespace onnxtrain {
namespace {

// Below this a copy is cheaper than a mapping, and immune to a file that shrinks later.
constexpr size_t kMapFrom = size_t{1} << 20;

Status ReadError(const std::string& path, int error) {
  return InvalidDataError("cannot read '" + path + "': " + std::strerror(error));
}

// Owns a file descriptor for the time of Open.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

Status ReadAll(const std::string& path, int descriptor, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t count = ::read(descriptor, out.data(), out.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ReadError(path, errno);
    if (count == 0) return InvalidDataError("'" + path + "' became shorter while it was read");
    out = out.subspan(static_cast<size_t>(count));
  }
  return OkStatus();
}

}  // namespace

FileContents::FileContents(FileContents&& other) noexcept { Swap(other); }

FileContents& FileContents::operator=(FileContents&& other) noexcept {
  Swap(other);
  return *this;
}

FileContents::~FileContents() {
  if (mapped_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void FileContents::Swap(FileContents& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(copy_, other.copy_);  // keeps the address of the bytes
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
}

StatusOr<FileContents> FileContents::Open(const std::string& path) {
  // Without O_NONBLOCK a named pipe would wait for a writer here.
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0) return ReadError(path, errno);
  struct stat info;
  if (::fstat(descriptor.get(), &info) != 0) return ReadError(path, errno);
  if (S_ISDIR(info.st_mode)) return InvalidDataError("'" + path + "' is a folder, a file is expected");
  if (!S_ISREG(info.st_mode)) return InvalidDataError("'" + path + "' is not a regular file; copy it into one");
  FileContents contents;
  contents.path_ = path;
  contents.size_ = static_cast<size_t>(info.st_size);
  if (contents.size_ < kMapFrom) {
    contents.copy_.resize(contents.size_);
    RETURN_IF_ERROR(ReadAll(path, descriptor.get(), contents.copy_));
    contents.data_ = contents.copy_.data();
    return contents;
  }
  void* mapping = ::mmap(nullptr, contents.size_, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
  if (mapping == MAP_FAILED) return ReadError(path, errno);
  contents.data_ = static_cast<const std::byte*>(mapping);
  contents.mapped_ = true;
  return contents;
}

namespace {

// What lies in the folder of a pattern, spelt as the pattern spells it.
std::vector<std::string> Siblings(const std::string& pattern) {
  const size_t slash = pattern.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : pattern.substr(0, slash + 1);
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, error)) {
    paths.push_back(folder + entry.path().filename().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

StatusOr<std::vector<std::string>> MatchFiles(const std::string& pattern) {
  if (pattern.find_first_of("*?[") == std::string::npos || ::access(pattern.c_str(), F_OK) == 0) {
    return std::vector<std::string>{pattern};
  }
  glob_t found = {};
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths;
  if (result == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (result == GLOB_NOSPACE) return ResourceExhaustedError("out of memory while matching '" + pattern + "'");
  if (paths.empty()) return UsageError("no file matches '" + pattern + "'" + DidYouMean(pattern, Siblings(pattern)));
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace onnxtrain
