// SPDX-License-Identifier: Apache-2.0
#include "graph/external_data.h"

#include <fcntl.h>
#include <onnx/onnx_pb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <set>
#include <vector>

#include "graph/onnx_proto.h"

namespace onnxtrain {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

bool ParseCount(const std::string& text, int64_t& value) {
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && value >= 0;
}

Status Refused(const std::string& location, const std::string& why) {
  return InvalidModelError("external data '" + location + "' " + why);
}

// The parts of a relative path; empty when it is none, or leaves its folder.
std::vector<std::string> SafeParts(const std::string& location) {
  std::vector<std::string> parts;
  if (location.empty() || location[0] == '/' || location.find('\0') != std::string::npos) return {};
  size_t begin = 0;
  while (begin <= location.size()) {
    const size_t end = std::min(location.find('/', begin), location.size());
    const std::string part = location.substr(begin, end - begin);
    if (part == "..") return {};
    if (!part.empty() && part != ".") parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

// Follows no link anywhere below `folder`.
StatusOr<int> OpenBelow(const std::string& folder, const std::string& location) {
  if (folder.empty()) return Refused(location, "cannot be read: the model was not loaded from a folder");
  const std::vector<std::string> parts = SafeParts(location);
  if (parts.empty()) return Refused(location, "must be a relative path inside the model's folder");
  FileDescriptor at(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (size_t i = 0; at.valid() && i < parts.size(); ++i) {
    const int kind = i + 1 < parts.size() ? O_DIRECTORY : O_NONBLOCK;
    at.Reset(openat(at.get(), parts[i].c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
  }
  if (!at.valid()) {
    const bool link = errno == ELOOP || errno == ENOTDIR;
    return Refused(location,
                   link ? "goes through a link or something that is no folder; copy the file itself beside the model"
                        : "cannot be opened in '" + folder + "': " + std::strerror(errno));
  }
  return dup(at.get());
}

Status CheckFile(int fd, const ExternalRange& range) {
  struct stat facts {};
  if (fstat(fd, &facts) != 0)
    return Refused(range.location, std::string("cannot be examined: ") + std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) return Refused(range.location, "is not a regular file");
  if (facts.st_nlink != 1) {
    return Refused(range.location, "has other names on this disk (a hard link); copy the file itself beside the model");
  }
  const int64_t size = facts.st_size;
  if (range.offset > size || range.bytes > size - range.offset) {
    return Refused(range.location, "has " + std::to_string(size) + " bytes, the model asks for " +
                                       std::to_string(range.bytes) + " at offset " + std::to_string(range.offset));
  }
  return OkStatus();
}

}  // namespace

StatusOr<ExternalRange> ExternalRangeOf(const onnx::TensorProto& tensor, const TensorType& type) {
  ExternalRange range;
  range.bytes = static_cast<int64_t>(type.bytes());
  const std::string where = "external data of tensor '" + tensor.name() + "'";
  std::set<std::string> seen;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (!seen.insert(entry.key()).second) return InvalidModelError(where + " gives '" + entry.key() + "' twice");
    if (entry.key() == "location") range.location = entry.value();
    int64_t number = 0;
    const bool is_number = entry.key() == "offset" || entry.key() == "length";
    if (is_number && !ParseCount(entry.value(), number)) {
      return InvalidModelError(where + ": '" + entry.key() + "' is '" + entry.value() +
                               "', expected a number of bytes");
    }
    if (entry.key() == "offset") range.offset = number;
    if (entry.key() == "length" && number != range.bytes) {
      return InvalidModelError(where + " has " + entry.value() + " bytes, its type " + ToString(type) + " needs " +
                               std::to_string(range.bytes));
    }
  }
  if (range.location.empty()) return InvalidModelError(where + " has no location");
  return range;
}

Status ReadExternal(const std::string& folder, const ExternalRange& range, std::byte* bytes) {
  ASSIGN_OR_RETURN(const int opened, OpenBelow(folder, range.location));
  const FileDescriptor file(opened);
  RETURN_IF_ERROR(CheckFile(file.get(), range));
  int64_t done = 0;
  while (bytes != nullptr && done < range.bytes) {
    const ssize_t got = pread(file.get(), bytes + done, static_cast<size_t>(range.bytes - done), range.offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return Refused(range.location, "cannot be read at byte " + std::to_string(range.offset + done) + ": " +
                                         (got == 0 ? "it has become shorter" : std::strerror(errno)));
    }
    done += got;
  }
  return OkStatus();
}

StatusOr<Tensor> LoadTensor(const onnx::TensorProto& proto, const std::string& folder) {
  if (proto.data_location() != onnx::TensorProto::EXTERNAL) return TensorFromProto(proto);
  ASSIGN_OR_RETURN(TensorType type, TensorTypeFromProto(proto));
  ASSIGN_OR_RETURN(const ExternalRange range, ExternalRangeOf(proto, type));
  RETURN_IF_ERROR(ReadExternal(folder, range, nullptr).Prepend("tensor '" + proto.name() + "'"));  // before allocating what the dimensions claim
  Tensor tensor(std::move(type));
  RETURN_IF_ERROR(ReadExternal(folder, range, tensor.data()));
  if (tensor.dtype() == DType::kBool) {
    for (uint8_t& byte : tensor.values<uint8_t>()) byte = byte != 0;
  }
  return tensor;
}

Status CheckTensor(const onnx::TensorProto& proto, const std::string& folder) {
  if (SizeOf(DTypeFromOnnx(proto.data_type())) == 0) return OkStatus();
  ASSIGN_OR_RETURN(const TensorType type, TensorTypeFromProto(proto));
  if (proto.data_location() != onnx::TensorProto::EXTERNAL) return CheckPayload(proto, type);
  ASSIGN_OR_RETURN(const ExternalRange range, ExternalRangeOf(proto, type));
  return ReadExternal(folder, range, nullptr).Prepend("tensor '" + proto.name() + "'");
}

}  // namespace onnxtrain
