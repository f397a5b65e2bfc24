// SPDX-License-Identifier: Apache-2.0
// The part of checkpoint.h that deals with a folder of them.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

#include "runtime/checkpoint.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kReplaced = ".replaced";

std::optional<int64_t> StepOf(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + 8) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || stop != end || CheckpointName(step) != name) return std::nullopt;
  return step;
}

// The checkpoint name in "step-00000150.replaced", and so on.
std::optional<std::string> LeftoverOf(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return std::nullopt;
  const std::string_view start = name.substr(0, name.size() - ending.size());
  if (!StepOf(start)) return std::nullopt;
  return std::string(start);
}

}  // namespace

std::string CheckpointName(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof(text), "step-%08lld", static_cast<long long>(step));
  return text;
}

StatusOr<CheckpointList> ListCheckpoints(FileSystem& files, const std::string& checkpoints_folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(checkpoints_folder));
  CheckpointList list;
  for (const std::string& name : names) {
    const std::optional<int64_t> step = StepOf(name);
    if (!step) continue;
    const std::string folder = checkpoints_folder + "/" + name;
    StatusOr<CheckpointInfo> info = InspectCheckpoint(folder);
    if (info.ok() && info->step != *step) {
      list.broken.emplace_back(
          folder, InvalidDataError("'" + folder + "': the manifest is of step " + std::to_string(info->step)));
    } else if (info.ok()) {
      list.complete.push_back(std::move(info).value());
    } else {
      list.broken.emplace_back(folder, info.status());
    }
  }
  std::sort(list.complete.begin(), list.complete.end(),
            [](const CheckpointInfo& a, const CheckpointInfo& b) { return a.step < b.step; });
  return list;
}

Status PruneCheckpoints(FileSystem& files, const std::string& checkpoints_folder, int64_t keep) {
  CHECK(keep > 0);
  ASSIGN_OR_RETURN(const CheckpointList list, ListCheckpoints(files, checkpoints_folder));
  const int64_t remove = static_cast<int64_t>(list.complete.size()) - keep;
  for (int64_t i = 0; i < remove; ++i) {
    const std::string& folder = list.complete[static_cast<size_t>(i)].folder;
    const std::string deleted = folder + ".deleted";
    RETURN_IF_ERROR(files.Remove(deleted));
    RETURN_IF_ERROR(files.Rename(folder, deleted));
    RETURN_IF_ERROR(files.Remove(deleted));
  }
  return OkStatus();
}

Status CleanCheckpoints(FileSystem& files, const std::string& checkpoints_folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(checkpoints_folder));
  for (const std::string& name : names) {
    const std::string path = checkpoints_folder + "/" + name;
    if (const auto original = LeftoverOf(name, kReplaced)) {
      const std::string place = checkpoints_folder + "/" + *original;
      if (!files.Exists(place)) {
        RETURN_IF_ERROR(files.Rename(path, place));
        RETURN_IF_ERROR(files.SyncFolder(checkpoints_folder));
        continue;
      }
      RETURN_IF_ERROR(files.Remove(path));
    } else if (LeftoverOf(name, ".incomplete") || LeftoverOf(name, ".deleted")) {
      RETURN_IF_ERROR(files.Remove(path));
    }
  }
  return OkStatus();
}

}  // namespace onnxtrain
