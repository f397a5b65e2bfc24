// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "runtime/data/byte_reader.h"
#include "runtime/data/file_contents.h"
#include "runtime/data/safetensors.h"

namespace onnxtrain {
namespace {

constexpr char kFormat[] = "onnxtrain.checkpoint";
constexpr int kVersion = 1;
constexpr char kStateFile[] = "state.safetensors";
constexpr char kMetadataFile[] = "metadata.json";
constexpr char kManifestFile[] = "checkpoint.json";

struct FileRecord {
  std::string name;
  uint64_t bytes = 0;
  uint64_t hash = 0;
};

struct Manifest {
  int64_t step = 0;
  std::vector<FileRecord> files;
};

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, value);
  return text;
}

uint64_t Hash(std::span<const std::byte> bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

// --- Writing ---

// Passes on to a file what is appended, and remembers its size and hash.
class HashingWriter {
 public:
  explicit HashingWriter(WritableFile* file) : file_(file), state_(XXH64_createState(), XXH64_freeState) {
    CHECK(state_ != nullptr);
    XXH64_reset(state_.get(), 0);
  }
  Status Append(std::span<const std::byte> bytes) {
    bytes_ += bytes.size();
    if (!bytes.empty()) XXH64_update(state_.get(), bytes.data(), bytes.size());
    return file_->Append(bytes);
  }
  Status Append(const std::string& text) { return Append(std::as_bytes(std::span<const char>(text))); }
  FileRecord Record(const std::string& name) const { return {name, bytes_, XXH64_digest(state_.get())}; }

 private:
  WritableFile* file_;
  uint64_t bytes_ = 0;
  std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)> state_;
};

StatusOr<FileRecord> WriteHashed(FileSystem& files, const std::string& folder, const std::string& name,
                                 const std::function<Status(HashingWriter&)>& write) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(folder + "/" + name));
  HashingWriter writer(file.get());
  RETURN_IF_ERROR(write(writer));
  RETURN_IF_ERROR(file->Sync());
  RETURN_IF_ERROR(file->Close());
  return writer.Record(name);
}

// The digest covers everything else of the manifest, in the canonical form of the JSON library: keys sorted, no spaces.
std::string Digest(nlohmann::json manifest) {
  manifest.erase("digest");
  const std::string text = manifest.dump();
  return Hex(Hash(std::as_bytes(std::span<const char>(text))));
}

std::string ManifestText(const Manifest& manifest) {
  nlohmann::json json = {{"format", kFormat}, {"version", kVersion}, {"step", manifest.step}};
  json["files"] = nlohmann::json::array();
  for (const FileRecord& file : manifest.files) {
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxhash64", Hex(file.hash)}});
  }
  json["digest"] = Digest(json);
  return json.dump(2) + "\n";
}

Status WriteFiles(FileSystem& files, const std::string& folder, const CheckpointView& checkpoint,
                  const std::string& header) {
  RETURN_IF_ERROR(files.CreateFolders(folder));
  Manifest manifest;
  manifest.step = checkpoint.step;
  ASSIGN_OR_RETURN(FileRecord state, WriteHashed(files, folder, kStateFile, [&](HashingWriter& writer) {
                     RETURN_IF_ERROR(writer.Append(header));
                     for (const auto& [name, tensor] : checkpoint.tensors) {
                       RETURN_IF_ERROR(writer.Append({tensor->data(), tensor->bytes()}));
                     }
                     return OkStatus();
                   }));
  manifest.files.push_back(std::move(state));
  ASSIGN_OR_RETURN(FileRecord metadata, WriteHashed(files, folder, kMetadataFile, [&](HashingWriter& writer) {
                     return writer.Append(checkpoint.metadata_json);
                   }));
  manifest.files.push_back(std::move(metadata));
  ASSIGN_OR_RETURN(const FileRecord last, WriteHashed(files, folder, kManifestFile, [&](HashingWriter& writer) {
                     return writer.Append(ManifestText(manifest));
                   }));
  return files.SyncFolder(folder);
}

// Puts `temporary` in the place of `folder`. Between the two renames of a replacement only ".replaced" holds the old
// one, which CleanCheckpoints puts back.
Status MoveIntoPlace(FileSystem& files, const std::string& temporary, const std::string& folder) {
  const std::string replaced = folder + ".replaced";
  const bool replaces = files.Exists(folder);
  if (replaces) {
    RETURN_IF_ERROR(files.Remove(replaced));
    RETURN_IF_ERROR(files.Rename(folder, replaced));
  }
  const Status status = files.Rename(temporary, folder);
  if (!status.ok()) {
    if (replaces) (void)files.Rename(replaced, folder);
    return status;
  }
  RETURN_IF_ERROR(files.SyncFolder(ParentFolder(folder)));
  // The new one is in place; an old one that cannot be removed now is cleaned up later.
  if (replaces) (void)files.Remove(replaced);
  return OkStatus();
}

// --- Reading ---

Status ManifestError(const std::string& path, const std::string& what) {
  return InvalidDataError("'" + path + "': " + what + "; the checkpoint is broken, use an earlier one");
}

StatusOr<uint64_t> ParseHash(const std::string& text, const std::string& path) {
  uint64_t value = 0;
  char end = 0;
  if (text.size() != 16 || std::sscanf(text.c_str(), "%16" SCNx64 "%c", &value, &end) != 1 || Hex(value) != text) {
    return ManifestError(path, "'" + text + "' is not an xxHash64");
  }
  return value;
}

StatusOr<Manifest> ManifestFrom(const nlohmann::json& json, const std::string& path) {
  Manifest manifest;
  if (json.at("format") != kFormat) return ManifestError(path, "not the manifest of a checkpoint");
  if (json.at("version") != kVersion) {
    return ManifestError(path, "version " + json.at("version").dump() + ", expected " + std::to_string(kVersion));
  }
  const std::string digest = Digest(json);
  if (json.at("digest").get<std::string>() != digest) {
    return ManifestError(path, "its digest is " + json.at("digest").dump() + ", expected \"" + digest + "\"");
  }
  manifest.step = json.at("step").get<int64_t>();
  if (manifest.step < 0) return ManifestError(path, "a negative step");
  for (const nlohmann::json& file : json.at("files")) {
    FileRecord record{file.at("name").get<std::string>(), file.at("bytes").get<uint64_t>(), 0};
    ASSIGN_OR_RETURN(record.hash, ParseHash(file.at("xxhash64").get<std::string>(), path));
    manifest.files.push_back(std::move(record));
  }
  const bool expected =
      manifest.files.size() == 2 && manifest.files[0].name == kStateFile && manifest.files[1].name == kMetadataFile;
  if (!expected) return ManifestError(path, "expected the files state.safetensors and metadata.json");
  return manifest;
}

StatusOr<Manifest> ReadManifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestFile;
  ASSIGN_OR_RETURN(const FileContents contents, FileContents::Open(path));
  const char* text = reinterpret_cast<const char*>(contents.bytes().data());
  try {
    return ManifestFrom(nlohmann::json::parse(text, text + contents.bytes().size()), path);
  } catch (const nlohmann::json::parse_error& error) {
    return ManifestError(path, "byte " + std::to_string(error.byte) + ": not valid JSON");
  } catch (const std::exception& error) {
    return ManifestError(path, error.what());
  }
}

Status CheckSize(const std::string& path, uint64_t expected) {
  std::error_code error;
  const uint64_t found = std::filesystem::file_size(path, error);
  if (error) return ManifestError(path, error.message());
  if (found == expected) return OkStatus();
  return ManifestError(path, "expected " + std::to_string(expected) + " bytes, found " + std::to_string(found));
}

StatusOr<FileContents> OpenVerified(const std::string& folder, const FileRecord& record) {
  const std::string path = folder + "/" + record.name;
  RETURN_IF_ERROR(CheckSize(path, record.bytes));
  ASSIGN_OR_RETURN(FileContents contents, FileContents::Open(path));
  const uint64_t found = Hash(contents.bytes());
  if (contents.bytes().size() == record.bytes && found == record.hash) return contents;
  return ManifestError(path, "the content has changed: expected xxHash64 " + Hex(record.hash) + ", found " +
                                 Hex(found) + " over bytes 0 to " + std::to_string(record.bytes));
}

}  // namespace

Status WriteCheckpoint(FileSystem& files, const std::string& folder, const CheckpointView& checkpoint) {
  CHECK_WITH(!folder.empty() && folder.back() != '/', folder);
  ASSIGN_OR_RETURN(const std::string header, SafetensorsHeaderFor(checkpoint.tensors, {{"format", kFormat}}));
  const std::string temporary = folder + ".incomplete";
  RETURN_IF_ERROR(files.Remove(temporary));
  Status status = WriteFiles(files, temporary, checkpoint, header);
  if (status.ok()) status = MoveIntoPlace(files, temporary, folder);
  if (status.ok()) return status;
  // Whatever cannot be removed now is not visible as a checkpoint, and is cleaned up by the next run.
  (void)files.Remove(temporary);
  return status.Prepend("checkpoint '" + folder + "' was not written, earlier ones are intact");
}

Status WriteCheckpoint(FileSystem& files, const std::string& folder, const Checkpoint& checkpoint) {
  CheckpointView view{checkpoint.step, {}, checkpoint.metadata_json};
  for (const auto& [name, tensor] : checkpoint.tensors) view.tensors.emplace_back(name, &tensor);
  return WriteCheckpoint(files, folder, view);
}

StatusOr<Checkpoint> ReadCheckpoint(const std::string& folder) {
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(folder));
  Checkpoint checkpoint;
  checkpoint.step = manifest.step;
  ASSIGN_OR_RETURN(const FileContents state, OpenVerified(folder, manifest.files[0]));
  ASSIGN_OR_RETURN(checkpoint.tensors, ParseSafetensors(state.bytes(), state.path()));
  ASSIGN_OR_RETURN(const FileContents metadata, OpenVerified(folder, manifest.files[1]));
  checkpoint.metadata_json.assign(reinterpret_cast<const char*>(metadata.bytes().data()), metadata.bytes().size());
  return checkpoint;
}

StatusOr<CheckpointInfo> InspectCheckpoint(const std::string& folder) {
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(folder));
  CheckpointInfo info{manifest.step, folder, 0};
  for (const FileRecord& record : manifest.files) {
    RETURN_IF_ERROR(CheckSize(folder + "/" + record.name, record.bytes));
    info.bytes += record.bytes;
  }
  return info;
}

}  // namespace onnxtrain
