// SPDX-License-Identifier: Apache-2.0
#include "graph/onnx_file.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <limits>

#include "graph/wire_format.h"

namespace onnxtrain {
namespace {

// ONNX's text parser recurses; deeper text than any graph needs must not exhaust the stack.
constexpr int kMaxNesting = 100;
// Enough to find the place of a mistake; nobody looks at the rest.
constexpr size_t kMaxDiagnosed = size_t{1} << 28;

bool NestsTooDeep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == '"') {
        quoted = false;
      }
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == '(' || text[i] == '{' || text[i] == '[') {
      if (++depth > kMaxNesting) return true;
    } else if (text[i] == ')' || text[i] == '}' || text[i] == ']') {
      depth = std::max(0, depth - 1);
    }
  }
  return false;
}

bool ParseStream(google::protobuf::io::ZeroCopyInputStream& stream, onnx::ModelProto* model) {
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(std::numeric_limits<int>::max());
  return model->ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage();
}

Status NoModel(std::string_view bytes) {
  const std::string error = FindWireError(bytes);
  return InvalidModelError("not an ONNX model: " + (error.empty() ? "its protobuf message cannot be parsed" : error));
}

std::string FirstBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(kMaxDiagnosed, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

bool IsTextName(const std::string& path) { return path.ends_with(".onnxtxt") || path.ends_with(".txt"); }

Status ReadTextFile(const std::string& path, onnx::ModelProto* model) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return ParseModelText(text, model);
}

}  // namespace

Status ParseModelBytes(std::string_view bytes, onnx::ModelProto* model) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return InvalidModelError("more than 2 GiB, which protobuf cannot hold; save the model with external data");
  }
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  return ParseStream(stream, model) ? OkStatus() : NoModel(bytes);
}

Status ReadModelFile(const std::string& path, onnx::ModelProto* model) {
  struct stat facts {};
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &facts) != 0) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) close(fd);
    return UsageError("cannot open the model: " + why);
  }
  google::protobuf::io::FileInputStream stream(fd);
  stream.SetCloseOnDelete(true);
  if (!S_ISREG(facts.st_mode)) return UsageError("the model is not a file");
  if (IsTextName(path)) return ReadTextFile(path, model);
  if (facts.st_size > std::numeric_limits<int>::max()) {
    return InvalidModelError(
        "the file has more than 2 GiB, which protobuf cannot hold; save the model with external data");
  }
  return ParseStream(stream, model) ? OkStatus() : NoModel(FirstBytes(path));
}

Status ParseModelText(std::string_view text, onnx::ModelProto* model) {
  if (NestsTooDeep(text)) {
    return InvalidModelError("text nests more than " + std::to_string(kMaxNesting) + " brackets");
  }
  const std::string kept(text);  // the parser borrows it, and needs a terminator
  try {
    onnx::OnnxParser parser(kept.c_str());
    const onnx::Common::Status status = parser.Parse(*model);
    if (!status.IsOK()) return InvalidModelError(status.ErrorMessage());
    if (!parser.EndOfInput()) return InvalidModelError("text goes on after the model");
  } catch (const std::exception& error) {
    return InvalidModelError(std::string("text cannot be read: ") + error.what());
  }
  return OkStatus();
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(other.fd_),
      position_(other.position_) {
  other.fd_ = -1;
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  const std::string temporary = path + ".part-" + std::to_string(getpid());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return InternalError("cannot write '" + path + "': " + std::strerror(errno));
  return AtomicFile(path, temporary, fd);
}

Status AtomicFile::Failed(const char* what) const {
  const std::string message = std::string("cannot ") + what + " '" + path_ + "': " + std::strerror(errno);
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? ResourceExhaustedError(message) : InternalError(message);
}

Status AtomicFile::Write(const void* bytes, size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count != 0) {
    const ssize_t done = write(fd_, at, std::min(count, size_t{1} << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return Failed("write");
    at += done;
    count -= static_cast<size_t>(done);
    position_ += static_cast<size_t>(done);
  }
  return OkStatus();
}

Status AtomicFile::Commit() {
  if (fsync(fd_) != 0 && errno != EINVAL) return Failed("write");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return Failed("rename");
  close(fd_);
  fd_ = -1;
  const std::string folder = path_.find('/') == std::string::npos ? "." : path_.substr(0, path_.rfind('/') + 1);
  const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory);  // so that the name survives a power failure; not every file system can
    close(directory);
  }
  return OkStatus();
}

}  // namespace onnxtrain
