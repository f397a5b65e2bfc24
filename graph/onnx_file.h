// SPDX-License-Identifier: Apache-2.0
// Bytes and text to ONNX's message, for sources of this folder. What arrives may be hostile: every failure is a Status.
#ifndef ONNXTRAIN_GRAPH_ONNX_FILE_H_
#define ONNXTRAIN_GRAPH_ONNX_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "graph/status.h"

namespace onnx {
class ModelProto;
}

namespace onnxtrain {

// Usage when there is no such file; InvalidModel with field and byte offset where it is no ONNX model.
Status ReadModelFile(const std::string& path, onnx::ModelProto* model);
Status ParseModelBytes(std::string_view bytes, onnx::ModelProto* model);
// ONNX's textual syntax; InvalidModel with line and column.
Status ParseModelText(std::string_view text, onnx::ModelProto* model);

// Writes beside `path` and renames: the file appears whole or not at all, flushed to disk. ResourceExhausted when the
// disk is full, Internal for other failures, both with the path.
class AtomicFile {
 public:
  static StatusOr<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // what was not committed is removed

  Status Write(const void* bytes, size_t count);
  size_t position() const { return position_; }
  Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, int fd);
  Status Failed(const char* what) const;

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  size_t position_ = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_ONNX_FILE_H_
