// SPDX-License-Identifier: Apache-2.0
// The state of a run after some step, in a folder:
//
//   checkpoints/step-00000150/state.safetensors   canonical tensors, whole and unsharded
//   checkpoints/step-00000150/metadata.json       the caller's text
//   checkpoints/step-00000150/checkpoint.json     step; name, size and xxHash64 of the others; a digest of itself
//
// A checkpoint appears whole or not at all: it is written under another name beside its place, synced, and renamed.
// What an interruption leaves behind has a name ending in ".incomplete", ".replaced" or ".deleted" and is cleaned up
// later. One process writes to a checkpoints folder at a time (run_folder.h).
#ifndef ONNXTRAIN_RUNTIME_CHECKPOINT_H_
#define ONNXTRAIN_RUNTIME_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/file_system.h"

namespace onnxtrain {

struct Checkpoint {
  int64_t step = 0;  // updates done
  // "parameter/w", "buffer/..", "moment1/w", "momentum/w", ...; names are unique.
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::string metadata_json;  // any text; comes back byte for byte
};

// The same without copies, for writers whose tensors live elsewhere.
struct CheckpointView {
  int64_t step = 0;
  std::vector<std::pair<std::string, const Tensor*>> tensors;
  std::string metadata_json;
};

// Writes the checkpoint *as* `folder`, whatever its name (no '/' at its end). One that is there is replaced; should the
// process end between the two renames that this takes, CleanCheckpoints puts the old one back. After an error all
// others are intact, and here is the old one or, where only the last sync failed, the new one. kResourceExhausted when
// the disk is full.
Status WriteCheckpoint(FileSystem& files, const std::string& folder, const Checkpoint& checkpoint);
Status WriteCheckpoint(FileSystem& files, const std::string& folder, const CheckpointView& checkpoint);

// Verifies sizes, hashes and structure. kInvalidData names file, offset, expected and found.
StatusOr<Checkpoint> ReadCheckpoint(const std::string& folder);

// The manifest alone: step and sizes are verified, hashes are not.
struct CheckpointInfo {
  int64_t step = 0;
  std::string folder;
  uint64_t bytes = 0;  // of all files
};
StatusOr<CheckpointInfo> InspectCheckpoint(const std::string& folder);

// --- A folder of checkpoints ---

// "step-00000150", wider from 10^8 on.
std::string CheckpointName(int64_t step);

struct CheckpointList {
  std::vector<CheckpointInfo> complete;                // by step, oldest first
  std::vector<std::pair<std::string, Status>> broken;  // folder and what is wrong with it
};
// Every step-N of a folder; a missing folder is an empty list.
StatusOr<CheckpointList> ListCheckpoints(FileSystem& files, const std::string& checkpoints_folder);

// Removes the oldest complete checkpoints but `keep` (> 0). Each disappears at once.
Status PruneCheckpoints(FileSystem& files, const std::string& checkpoints_folder, int64_t keep);

// Removes what interrupted writers left, and puts back a checkpoint whose replacement did not arrive. Called at the
// start of a run that holds the lock.
Status CleanCheckpoints(FileSystem& files, const std::string& checkpoints_folder);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CHECKPOINT_H_
