// SPDX-License-Identifier: Apache-2.0
// Plans of cuDNN in files, one a graph, so that engines are chosen and code is built once and not in every process. A
// file belongs to one graph, one kind of GPU and one version of the library; its first line says which.
#ifndef ONNXTRAIN_CUDA_OPS_CUDNN_PLAN_FILES_H_
#define ONNXTRAIN_CUDA_OPS_CUDNN_PLAN_FILES_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/file_system.h"

namespace onnxtrain {

// One thread at a time.
class CudnnPlanFiles {
 public:
  // With an empty `folder` nothing is read or written. `made_for` names GPU, library and options in one line.
  CudnnPlanFiles(std::unique_ptr<FileSystem> files, std::string folder, std::string made_for);

  // The plan as JSON. A file that is broken or belongs to something else is none; notes() says so.
  std::optional<std::string> Read(const std::string& graph);
  // Appears whole or not at all. When it cannot be written, notes() says so and none is tried again.
  void Write(const std::string& graph, const std::string& json);
  // The caller found that a plan that was read does not serve.
  void Reject(const std::string& graph, const std::string& reason);
  const std::vector<std::string>& notes() const { return notes_; }

  // FOLDER/cudnn_plan_DIGEST.json, the digest being that of made_for and graph.
  std::string PathOf(const std::string& graph) const;

 private:
  std::string FirstLine(const std::string& graph) const;

  std::unique_ptr<FileSystem> files_;
  std::string folder_;
  std::string made_for_;
  bool writable_ = true;
  std::vector<std::string> notes_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CUDNN_PLAN_FILES_H_
