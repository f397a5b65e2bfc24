// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/support/byte_edits.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

// The content depends on step and variant, so that old and new can be told apart.
Checkpoint Make(int64_t step, float variant = 0) {
  Checkpoint checkpoint;
  checkpoint.step = step;
  const float base = static_cast<float>(step) + variant;
  checkpoint.tensors.emplace_back("parameter/layer.0/weight", Tensor::FromVector<float>({2, 3}, {base, 1, 2, 3, 4, 5}));
  checkpoint.tensors.emplace_back("moment1/layer.0/weight", Tensor::FromVector<double>({1}, {base}));
  checkpoint.tensors.emplace_back("buffer/empty", Tensor::FromVector<int64_t>({0, 2}, {}));
  checkpoint.tensors.emplace_back("counter/step", Tensor::Scalar<int64_t>(step));
  checkpoint.metadata_json = "{ \"seed\":7,\n \"variant\": " + std::to_string(variant) + "}";
  return checkpoint;
}

void ExpectEqual(const StatusOr<Checkpoint>& read, const Checkpoint& expected) {
  ASSERT_OK(read);
  EXPECT_EQ(read->step, expected.step);
  EXPECT_EQ(read->metadata_json, expected.metadata_json);
  ASSERT_EQ(read->tensors.size(), expected.tensors.size());
  for (size_t i = 0; i < expected.tensors.size(); ++i) {
    EXPECT_EQ(read->tensors[i].first, expected.tensors[i].first);
    EXPECT_TRUE(read->tensors[i].second.Identical(expected.tensors[i].second)) << expected.tensors[i].first;
  }
}

std::vector<int64_t> Steps(const std::string& folder) {
  PosixFileSystem files;
  const auto list = ListCheckpoints(files, folder);
  EXPECT_OK(list);
  for (const auto& [path, status] : list->broken) ADD_FAILURE() << path << ": " << status.message();
  std::vector<int64_t> steps;
  for (const CheckpointInfo& info : list->complete) steps.push_back(info.step);
  return steps;
}

TEST(CheckpointTest, RoundTrips) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  const Checkpoint checkpoint = Make(150);
  const std::string path = folder.Path("checkpoints/" + CheckpointName(150));
  ASSERT_OK(WriteCheckpoint(files, path, checkpoint));
  ExpectEqual(ReadCheckpoint(path), checkpoint);
  EXPECT_EQ(*files.List(path), (std::vector<std::string>{"checkpoint.json", "metadata.json", "state.safetensors"}));
  EXPECT_EQ(*files.List(folder.Path("checkpoints")), std::vector<std::string>{"step-00000150"});
}

TEST(CheckpointTest, WithoutTensorsOrMetadata) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  ASSERT_OK(WriteCheckpoint(files, folder.Path("x"), Checkpoint()));
  ExpectEqual(ReadCheckpoint(folder.Path("x")), Checkpoint());
}

TEST(CheckpointTest, NamesAreUnique) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  Checkpoint checkpoint = Make(1);
  checkpoint.tensors.push_back(checkpoint.tensors[0]);
  EXPECT_TRUE(Fails(WriteCheckpoint(files, folder.Path("x"), checkpoint), StatusCode::kInternal, "two tensors"));
  EXPECT_FALSE(files.Exists(folder.Path("x")));
}

TEST(CheckpointTest, ListsByStepAndPrunesTheOldest) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  EXPECT_TRUE(Steps(folder.Path("none")).empty());
  for (int64_t step : {20, 3, 100, 123456789}) {
    ASSERT_OK(WriteCheckpoint(files, folder.Path(CheckpointName(step)), Make(step)));
  }
  folder.Write("step-1/checkpoint.json", "not ours");
  folder.Write("notes.txt", "not ours");
  EXPECT_EQ(Steps(folder.path()), (std::vector<int64_t>{3, 20, 100, 123456789}));
  ASSERT_OK(PruneCheckpoints(files, folder.path(), 5));
  EXPECT_EQ(Steps(folder.path()).size(), 4u);
  ASSERT_OK(PruneCheckpoints(files, folder.path(), 2));
  EXPECT_EQ(Steps(folder.path()), (std::vector<int64_t>{100, 123456789}));
  EXPECT_TRUE(files.Exists(folder.Path("notes.txt")));
}

TEST(CheckpointTest, ADamagedOneIsListedAsBroken) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  for (int64_t step : {1, 2, 3, 4}) {
    ASSERT_OK(WriteCheckpoint(files, folder.Path(CheckpointName(step)), Make(step)));
  }
  std::filesystem::resize_file(folder.Path("step-00000002/state.safetensors"), 10);
  std::filesystem::remove(folder.Path("step-00000003/checkpoint.json"));
  std::filesystem::rename(folder.Path("step-00000004"), folder.Path("step-00000005"));
  const auto list = ListCheckpoints(files, folder.path());
  ASSERT_OK(list);
  ASSERT_EQ(list->complete.size(), 1u);
  EXPECT_EQ(list->complete[0].step, 1);
  ASSERT_EQ(list->broken.size(), 3u);
  EXPECT_DATA_ERROR(list->broken[0].second, "step-00000002/state.safetensors': expected");
  EXPECT_DATA_ERROR(list->broken[0].second, "found 10");
  EXPECT_DATA_ERROR(list->broken[1].second, "checkpoint.json': No such file");
  EXPECT_DATA_ERROR(list->broken[2].second, "the manifest is of step 4");
}

// No byte of a checkpoint can change unnoticed.
TEST(CheckpointTest, EveryChangedByteIsFound) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  const std::string path = folder.Path("step-00000007");
  ASSERT_OK(WriteCheckpoint(files, path, Make(7)));
  for (const std::string name : {"state.safetensors", "metadata.json"}) {
    const std::string content = ReadText(path + "/" + name);
    for (size_t i = 0; i < content.size(); ++i) {
      std::string changed = content;
      changed[i] = static_cast<char>(changed[i] ^ 4);
      folder.Write("step-00000007/" + name, changed);
      EXPECT_DATA_ERROR(ReadCheckpoint(path), name + "': the content has changed: expected xxHash64");
    }
    folder.Write("step-00000007/" + name, content);
  }
  const std::string manifest = ReadText(path + "/checkpoint.json");
  for (size_t i = 0; i < manifest.size(); ++i) {
    std::string changed = manifest;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    folder.Write("step-00000007/checkpoint.json", changed);
    const auto read = ReadCheckpoint(path);
    if (read.ok()) {
      ExpectEqual(read, Make(7));  // white space
    } else {
      EXPECT_DATA_ERROR(read, "checkpoint.json");
    }
  }
}

TEST(CheckpointTest, EveryCutIsFound) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  const std::string path = folder.Path("step-00000007");
  ASSERT_OK(WriteCheckpoint(files, path, Make(7)));
  for (const std::string name : {"state.safetensors", "metadata.json", "checkpoint.json"}) {
    const std::string content = ReadText(path + "/" + name);
    for (size_t length = 0; length + 1 < content.size(); ++length) {
      folder.Write("step-00000007/" + name, content.substr(0, length));
      EXPECT_DATA_ERROR(ReadCheckpoint(path), name);
    }
    folder.Write("step-00000007/" + name, content);
  }
}

TEST(CheckpointTest, SeededMutationsOfTheManifest) {
  constexpr uint64_t kSeed = 4711;
  const TemporaryFolder folder;
  PosixFileSystem files;
  const std::string path = folder.Path("step-00000007");
  ASSERT_OK(WriteCheckpoint(files, path, Make(7)));
  const std::vector<std::byte> manifest = ReadBytes(path + "/checkpoint.json");
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 1000; ++i) {
    folder.Write("step-00000007/checkpoint.json", Mutate(manifest, random));
    const auto read = ReadCheckpoint(path);
    if (read.ok()) {
      ExpectEqual(read, Make(7));
    } else {
      EXPECT_DATA_ERROR(read, "checkpoint.json") << "seed " << kSeed << ", mutation " << i;
    }
  }
}

// Writes checkpoint 2 beside 1, with a failure at the n-th operation for every n. Checkpoint 1 stays whole; 2 is whole
// or absent; a clean-up leaves nothing else; the next attempt works.
TEST(CheckpointTest, AFailureAtAnyOperationLeavesNothingHalf) {
  for (const Fault fault : {Fault::kError, Fault::kDiskFull, Fault::kEnd}) {
    for (int64_t at = 0;; ++at) {
      SCOPED_TRACE("fault " + std::to_string(static_cast<int>(fault)) + " at operation " + std::to_string(at));
      const TemporaryFolder folder;
      PosixFileSystem real;
      ASSERT_OK(WriteCheckpoint(real, folder.Path("step-00000001"), Make(1)));
      FaultyFileSystem files(fault, at, 100);
      const Status status = WriteCheckpoint(files, folder.Path("step-00000002"), Make(2));
      if (files.operations() <= at) {
        EXPECT_OK(status);
        EXPECT_GT(at, 15);
        break;
      }
      EXPECT_FALSE(status.ok());
      const bool full = fault == Fault::kDiskFull;
      EXPECT_EQ(status.code(), full ? StatusCode::kResourceExhausted : StatusCode::kInternal) << status.message();
      ExpectEqual(ReadCheckpoint(folder.Path("step-00000001")), Make(1));
      const auto steps = Steps(folder.path());
      if (steps.size() == 2) ExpectEqual(ReadCheckpoint(folder.Path("step-00000002")), Make(2));
      ASSERT_OK(CleanCheckpoints(real, folder.path()));
      EXPECT_EQ(real.List(folder.path())->size(), steps.size());
      ASSERT_OK(WriteCheckpoint(real, folder.Path("step-00000002"), Make(2)));
      EXPECT_EQ(Steps(folder.path()), (std::vector<int64_t>{1, 2}));
    }
  }
}

// The same where checkpoint 2 is replaced: after the clean-up it is the old or the new one, never neither.
TEST(CheckpointTest, AReplacementIsTheOldOrTheNewOne) {
  int old_ones = 0;
  int new_ones = 0;
  for (const Fault fault : {Fault::kError, Fault::kDiskFull, Fault::kEnd}) {
    for (int64_t at = 0;; ++at) {
      SCOPED_TRACE("fault " + std::to_string(static_cast<int>(fault)) + " at operation " + std::to_string(at));
      const TemporaryFolder folder;
      PosixFileSystem real;
      const std::string path = folder.Path("step-00000002");
      ASSERT_OK(WriteCheckpoint(real, path, Make(2)));
      FaultyFileSystem files(fault, at, 100);
      const Status status = WriteCheckpoint(files, path, Make(2, 0.5f));
      if (files.operations() <= at) {
        EXPECT_OK(status);
        break;
      }
      ASSERT_OK(CleanCheckpoints(real, folder.path()));
      EXPECT_EQ(*real.List(folder.path()), std::vector<std::string>{"step-00000002"});
      const auto read = ReadCheckpoint(path);
      ASSERT_OK(read);
      const bool is_new = read->metadata_json == Make(2, 0.5f).metadata_json;
      ExpectEqual(read, is_new ? Make(2, 0.5f) : Make(2));
      EXPECT_TRUE(is_new || !status.ok());
      ++(is_new ? new_ones : old_ones);
    }
  }
  EXPECT_GT(old_ones, 30);
  EXPECT_GT(new_ones, 2);
}

TEST(CheckpointTest, PruningThatIsInterruptedLeavesNothingHalf) {
  for (const Fault fault : {Fault::kError, Fault::kEnd}) {
    for (int64_t at = 0;; ++at) {
      SCOPED_TRACE("fault " + std::to_string(static_cast<int>(fault)) + " at operation " + std::to_string(at));
      const TemporaryFolder folder;
      PosixFileSystem real;
      for (int64_t step : {1, 2, 3}) ASSERT_OK(WriteCheckpoint(real, folder.Path(CheckpointName(step)), Make(step)));
      FaultyFileSystem files(fault, at);
      const Status status = PruneCheckpoints(files, folder.path(), 1);
      const auto steps = Steps(folder.path());  // none is broken
      EXPECT_EQ(steps.back(), 3);
      for (int64_t step : steps) ExpectEqual(ReadCheckpoint(folder.Path(CheckpointName(step))), Make(step));
      if (files.operations() <= at) {
        EXPECT_OK(status);
        break;
      }
      EXPECT_FALSE(status.ok());
      ASSERT_OK(CleanCheckpoints(real, folder.path()));
      EXPECT_EQ(real.List(folder.path())->size(), steps.size());
    }
  }
}

}  // namespace
}  // namespace onnxtrain
