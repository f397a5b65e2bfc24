// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "graph/status.h"

namespace onnxtrain {

namespace {

// Memory where the system has it: what tests write is synced again and again.
std::string FolderForTests() {
  const std::string memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK | X_OK) == 0 ? memory : std::filesystem::temp_directory_path().string();
}

}  // namespace

TemporaryFolder::TemporaryFolder() : path_(FolderForTests() + "/onnxtrain.XXXXXX") {
  CHECK_WITH(mkdtemp(path_.data()) != nullptr, path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string TemporaryFolder::Path(std::string_view name) const { return path_ + "/" + std::string(name); }

std::string TemporaryFolder::Write(std::string_view name, std::string_view content) const {
  const std::string path = Path(name);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  CHECK_WITH(file.good(), path);
  return path;
}

std::string TemporaryFolder::Write(std::string_view name, std::span<const std::byte> content) const {
  return Write(name, std::string_view(reinterpret_cast<const char*>(content.data()), content.size()));
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::byte> ReadBytes(const std::string& path) { return ToBytes(ReadText(path)); }

std::vector<std::byte> ToBytes(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace onnxtrain
