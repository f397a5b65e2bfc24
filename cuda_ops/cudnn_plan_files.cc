// SPDX-License-Identifier: Apache-2.0
// The file: a line that names what it is for, the digest of the rest, and the library's JSON.
#include "cuda_ops/cudnn_plan_files.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "graph/digest.h"

namespace onnxtrain {
namespace {

std::string Hex(uint64_t word) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, word);
  return text;
}

std::string Content(const std::string& first_line, const std::string& json) {
  return first_line + '\n' + Hex(Fnv1a(json)) + '\n' + json;
}

}  // namespace

CudnnPlanFiles::CudnnPlanFiles(std::unique_ptr<FileSystem> files, std::string folder, std::string made_for)
    : files_(std::move(files)), folder_(std::move(folder)), made_for_(std::move(made_for)) {}

std::string CudnnPlanFiles::FirstLine(const std::string& graph) const {
  return "onnxtrain cudnn plan 1, " + made_for_ + ", " + graph;
}

std::string CudnnPlanFiles::PathOf(const std::string& graph) const {
  return folder_ + "/cudnn_plan_" + Hex(Fnv1a(FirstLine(graph))) + ".json";
}

std::optional<std::string> CudnnPlanFiles::Read(const std::string& graph) {
  if (folder_.empty() || !files_->Exists(PathOf(graph))) return std::nullopt;
  std::ifstream file(PathOf(graph), std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  const std::string content = text.str();
  const size_t first = content.find('\n');
  const size_t second = first == std::string::npos ? first : content.find('\n', first + 1);
  if (second != std::string::npos) {
    std::string json = content.substr(second + 1);
    if (Content(FirstLine(graph), json) == content) return json;
  }
  Reject(graph, "it was cut, changed, or made for another graph, GPU or library");
  return std::nullopt;
}

void CudnnPlanFiles::Reject(const std::string& graph, const std::string& reason) {
  notes_.push_back(PathOf(graph) + " is not used: " + reason + "; the engine is chosen anew and the file replaced");
}

void CudnnPlanFiles::Write(const std::string& graph, const std::string& json) {
  if (folder_.empty() || !writable_) return;
  Status written = files_->CreateFolders(folder_);
  if (written.ok()) {
    const std::string content = Content(FirstLine(graph), json);
    written =
        WriteFileAtomically(*files_, PathOf(graph), [&](WritableFile& file) { return file.Append(content); });
  }
  if (written.ok()) return;
  writable_ = false;
  notes_.push_back("plans of cuDNN are not kept: " + written.message());
}

}  // namespace onnxtrain
