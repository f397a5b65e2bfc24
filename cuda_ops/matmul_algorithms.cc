// SPDX-License-Identifier: Apache-2.0
// The file is text: a line that names the format, one that names GPU and library, a line for each product with the
// algorithm's eight words, and a last line with their number and a digest of all before it.
#include "cuda_ops/matmul_algorithms.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "graph/digest.h"

namespace onnxtrain {
namespace {

constexpr const char* kFormat = "onnxtrain matmul algorithms 1";
constexpr size_t kWordDigits = 16;

std::string Hex(uint64_t word) {
  char text[kWordDigits + 1];
  std::snprintf(text, sizeof(text), "%016" PRIx64, word);
  return text;
}

bool ParseHex(const std::string& text, uint64_t* word) {
  if (text.size() != kWordDigits || text.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
  *word = std::stoull(text, nullptr, 16);
  return true;
}

std::string LineOf(const std::string& product, const MatmulAlgorithm& algorithm) {
  std::string line;
  for (const uint64_t word : algorithm) line += Hex(word) + ' ';
  return line + product + '\n';
}

bool ParseLine(const std::string& line, std::string* product, MatmulAlgorithm* algorithm) {
  constexpr size_t kField = kWordDigits + 1;
  if (line.size() <= algorithm->size() * kField) return false;
  for (size_t i = 0; i < algorithm->size(); ++i) {
    if (line[(i + 1) * kField - 1] != ' ' || !ParseHex(line.substr(i * kField, kWordDigits), &(*algorithm)[i])) {
      return false;
    }
  }
  *product = line.substr(algorithm->size() * kField);
  return true;
}

std::string LastLine(size_t count, const std::string& before) {
  return "end " + std::to_string(count) + ' ' + Hex(Fnv1a(before)) + '\n';
}

StatusOr<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) return InternalError("it cannot be read");
  return text.str();
}

}  // namespace

MatmulAlgorithms::MatmulAlgorithms(std::unique_ptr<FileSystem> files, const std::string& folder, std::string made_for)
    : files_(std::move(files)), made_for_(std::move(made_for)) {
  if (!folder.empty()) path_ = folder + "/matmul_algorithms_" + Hex(Fnv1a(made_for_)) + ".txt";
}

std::unique_ptr<MatmulAlgorithms> MatmulAlgorithms::Open(std::unique_ptr<FileSystem> files, const std::string& folder,
                                                         const std::string& made_for) {
  std::unique_ptr<MatmulAlgorithms> table(new MatmulAlgorithms(std::move(files), folder, made_for));
  if (const Status read = table->Read(); !read.ok()) {
    table->algorithms_.clear();
    table->notes_.push_back(table->path_ + " is not used: " + read.message() +
                            "; algorithms are chosen anew and the file is replaced");
  }
  return table;
}

std::optional<MatmulAlgorithm> MatmulAlgorithms::Find(const std::string& product) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = algorithms_.find(product);
  if (found == algorithms_.end()) return std::nullopt;
  return found->second;
}

void MatmulAlgorithms::Keep(const std::string& product, const MatmulAlgorithm& algorithm) {
  CHECK_WITH(product.find('\n') == std::string::npos, product);
  const std::lock_guard<std::mutex> lock(mutex_);
  algorithms_[product] = algorithm;
  if (path_.empty() || !writable_) return;
  if (const Status written = Write(); !written.ok()) {
    writable_ = false;
    notes_.push_back("the choice of algorithms for matrix products is not kept: " + written.message());
  }
}

std::vector<std::string> MatmulAlgorithms::notes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return notes_;
}

Status MatmulAlgorithms::Read() {
  if (path_.empty() || !files_->Exists(path_)) return OkStatus();
  ASSIGN_OR_RETURN(const std::string text, ReadWhole(path_));
  return Parse(text);
}

Status MatmulAlgorithms::Parse(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != kFormat) {
    return InvalidDataError(std::string("its first line is not '") + kFormat + "'");
  }
  if (!std::getline(lines, line) || line != "for " + made_for_) {
    return InvalidDataError("it was made " + line + ", this is " + made_for_);
  }
  size_t at = std::string(kFormat).size() + 1 + line.size() + 1;
  for (int number = 3; std::getline(lines, line); ++number, at += line.size() + 1) {
    if (line.starts_with("end ")) break;
    std::string product;
    MatmulAlgorithm algorithm;
    if (!ParseLine(line, &product, &algorithm)) {
      return InvalidDataError("line " + std::to_string(number) + " (byte " + std::to_string(at) +
                              ") is not eight words and a product");
    }
    algorithms_[product] = algorithm;
  }
  at = std::min(at, text.size());
  if (text.substr(at) != LastLine(algorithms_.size(), text.substr(0, at))) {
    return InvalidDataError("it was cut or changed: the line at byte " + std::to_string(at) +
                            " is not the end with the number and digest of the lines before");
  }
  return OkStatus();
}

std::string MatmulAlgorithms::Text() const {
  std::string text = std::string(kFormat) + "\nfor " + made_for_ + '\n';
  for (const auto& [product, algorithm] : algorithms_) text += LineOf(product, algorithm);
  return text + LastLine(algorithms_.size(), text);
}

// Processes that share the folder write files of their own; the last one's stays.
Status MatmulAlgorithms::Write() {
  RETURN_IF_ERROR(files_->CreateFolders(ParentFolder(path_)));
  const std::string own = path_ + '.' + std::to_string(getpid()) + '.' + Hex(reinterpret_cast<uintptr_t>(this));
  RETURN_IF_ERROR(WriteFileAtomically(*files_, own, [text = Text()](WritableFile& file) { return file.Append(text); }));
  if (const Status renamed = files_->Rename(own, path_); !renamed.ok()) {
    (void)files_->Remove(own);
    return renamed;
  }
  return files_->SyncFolder(ParentFolder(path_));
}

}  // namespace onnxtrain
