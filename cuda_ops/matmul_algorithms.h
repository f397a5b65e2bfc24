// SPDX-License-Identifier: Apache-2.0
// Which algorithm of cuBLASLt serves which matrix product: asked of the library once for each product of a process, and
// kept in a file for the next, so that equal products run the same code from run to run. A table belongs to one kind of
// GPU and one version of the library; so does its file.
#ifndef ONNXTRAIN_CUDA_OPS_MATMUL_ALGORITHMS_H_
#define ONNXTRAIN_CUDA_OPS_MATMUL_ALGORITHMS_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "graph/status.h"
#include "runtime/file_system.h"

namespace onnxtrain {

// The bytes of a cublasLtMatmulAlgo_t, which the library allows to be kept for the same version of itself.
using MatmulAlgorithm = std::array<uint64_t, 8>;

// Any thread may call.
class MatmulAlgorithms {
 public:
  // `made_for` names GPU and library in one line. With an empty `folder` nothing is read or written. A file that is
  // broken or was made for something else is not used: notes() says so, and the first Keep replaces it.
  static std::unique_ptr<MatmulAlgorithms> Open(std::unique_ptr<FileSystem> files, const std::string& folder,
                                                const std::string& made_for);

  // `product` is one line that tells everything on which the choice depends: shape, types, epilogue, alignment.
  std::optional<MatmulAlgorithm> Find(const std::string& product) const;
  // Replaces an older choice and writes the file, which appears whole or not at all. When it cannot be written, notes()
  // says so and it is not tried again: a table in memory does, too.
  void Keep(const std::string& product, const MatmulAlgorithm& algorithm);

  // FOLDER/matmul_algorithms_DIGEST.txt, the digest being that of `made_for`; empty without a folder.
  const std::string& path() const { return path_; }
  std::vector<std::string> notes() const;

 private:
  MatmulAlgorithms(std::unique_ptr<FileSystem> files, const std::string& folder, std::string made_for);
  Status Read();
  Status Parse(const std::string& text);
  std::string Text() const;
  Status Write();

  const std::unique_ptr<FileSystem> files_;
  const std::string made_for_;
  std::string path_;
  bool writable_ = true;
  mutable std::mutex mutex_;  // of what follows
  std::map<std::string, MatmulAlgorithm> algorithms_;
  std::vector<std::string> notes_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_MATMUL_ALGORITHMS_H_
