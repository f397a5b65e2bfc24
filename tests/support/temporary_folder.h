// SPDX-License-Identifier: Apache-2.0
// A fresh folder for one test, removed with the object.
#ifndef ONNXTRAIN_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
#define ONNXTRAIN_TESTS_SUPPORT_TEMPORARY_FOLDER_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onnxtrain {

class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }
  // path()/name
  std::string Path(std::string_view name) const;
  // Writes the file and returns its path.
  std::string Write(std::string_view name, std::string_view content) const;
  std::string Write(std::string_view name, std::span<const std::byte> content) const;

 private:
  std::string path_;
};

// Fails the test when the file cannot be read.
std::string ReadText(const std::string& path);
std::vector<std::byte> ReadBytes(const std::string& path);
std::vector<std::byte> ToBytes(std::string_view text);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
