// SPDX-License-Identifier: Apache-2.0
#include "tests/support/faulty_file_system.h"

#include <algorithm>
#include <utility>

namespace onnxtrain {
namespace {

class FaultyFile final : public WritableFile {
 public:
  FaultyFile(std::unique_ptr<WritableFile> real, std::string path, FaultyFileSystem::State* state)
      : real_(std::move(real)), path_(std::move(path)), state_(state) {}

  Status Sync() override {
    bool half = false;
    RETURN_IF_ERROR(state_->Meet("sync " + path_, false, &half));
    return real_->Sync();
  }
  Status Close() override {
    bool half = false;
    RETURN_IF_ERROR(state_->Meet("close " + path_, false, &half));
    return real_->Close();
  }

 protected:
  StatusOr<size_t> WriteSome(std::span<const std::byte> bytes) override {
    bytes = bytes.first(std::min(bytes.size(), state_->write_limit));
    bool half = false;
    const Status status = state_->Meet("write " + path_, true, &half);
    if (half) RETURN_IF_ERROR(real_->Append(bytes.first(bytes.size() / 2)));
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(real_->Append(bytes));
    return bytes.size();
  }

 private:
  std::unique_ptr<WritableFile> real_;
  std::string path_;
  FaultyFileSystem::State* state_;
};

}  // namespace

Status FaultyFileSystem::State::Meet(const std::string& what, bool is_write, bool* half) {
  const bool now = operations++ == at && fault != Fault::kNone;
  if (now) {
    *half = true;
    broken = fault != Fault::kError;
  } else if (!broken || (fault == Fault::kDiskFull && !is_write)) {
    return OkStatus();
  }
  if (fault == Fault::kDiskFull) return ResourceExhaustedError("injected: disk full at " + what);
  return InternalError("injected: failure at " + what);
}

StatusOr<std::unique_ptr<WritableFile>> FaultyFileSystem::Wrap(StatusOr<std::unique_ptr<WritableFile>> file,
                                                               const std::string& path) {
  RETURN_IF_ERROR(file.status());
  return std::unique_ptr<WritableFile>(new FaultyFile(std::move(file).value(), path, &state_));
}

StatusOr<std::unique_ptr<WritableFile>> FaultyFileSystem::Create(const std::string& path) {
  bool half = false;
  const Status status = state_.Meet("create " + path, true, &half);
  if (half) RETURN_IF_ERROR(real_.Create(path).status());
  RETURN_IF_ERROR(status);
  return Wrap(real_.Create(path), path);
}

StatusOr<std::unique_ptr<WritableFile>> FaultyFileSystem::OpenForAppend(const std::string& path) {
  bool half = false;
  RETURN_IF_ERROR(state_.Meet("open " + path, true, &half));
  return Wrap(real_.OpenForAppend(path), path);
}

Status FaultyFileSystem::CreateFolders(const std::string& path) {
  bool half = false;
  RETURN_IF_ERROR(state_.Meet("create folder " + path, true, &half));
  return real_.CreateFolders(path);
}

Status FaultyFileSystem::Rename(const std::string& from, const std::string& to) {
  bool half = false;  // a rename is atomic
  RETURN_IF_ERROR(state_.Meet("rename to " + to, false, &half));
  return real_.Rename(from, to);
}

Status FaultyFileSystem::Remove(const std::string& path) {
  bool half = false;
  const Status status = state_.Meet("remove " + path, false, &half);
  if (half) {  // of a folder, the first file only
    ASSIGN_OR_RETURN(const std::vector<std::string> names, real_.List(path));
    if (!names.empty()) RETURN_IF_ERROR(real_.Remove(path + "/" + names[0]));
  }
  RETURN_IF_ERROR(status);
  return real_.Remove(path);
}

Status FaultyFileSystem::SyncFolder(const std::string& path) {
  bool half = false;
  RETURN_IF_ERROR(state_.Meet("sync folder " + path, false, &half));
  return real_.SyncFolder(path);
}

StatusOr<std::vector<std::string>> FaultyFileSystem::List(const std::string& folder) { return real_.List(folder); }

bool FaultyFileSystem::Exists(const std::string& path) { return real_.Exists(path); }

}  // namespace onnxtrain
