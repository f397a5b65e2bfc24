// SPDX-License-Identifier: Apache-2.0
#include "tools/run_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/checkpoint.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/command_line.h"

namespace onnxtrain {
namespace {

class RunFolderTest : public ::testing::Test {
 protected:
  std::unique_ptr<RunFolder> Open(bool resume, bool overwrite) {
    StatusOr<std::unique_ptr<RunFolder>> opened = RunFolder::Open(files_, run(), resume, overwrite);
    EXPECT_OK(opened);
    return opened.ok() ? *std::move(opened) : nullptr;
  }
  std::string run() const { return folder_.Path("runs/first"); }
  void AddCheckpoint(int64_t step) {
    Checkpoint checkpoint;
    checkpoint.step = step;
    checkpoint.metadata_json = "{\"step\":" + std::to_string(step) + ",\"epoch\":2,\"offset\":5}";
    ASSERT_OK(files_.CreateFolders(run() + "/checkpoints"));
    ASSERT_OK(WriteCheckpoint(files_, run() + "/checkpoints/" + CheckpointName(step), checkpoint));
  }
  static StepLine Line(int64_t step) {
    StepLine line;
    line.result.step = step;
    line.result.loss = 1.0 / static_cast<double>(step + 1);
    line.samples = 4;
    return line;
  }

  TemporaryFolder folder_;
  PosixFileSystem files_;
};

TEST_F(RunFolderTest, OneRunAtATime) {
  const std::unique_ptr<RunFolder> first = Open(false, false);
  EXPECT_USAGE_ERROR(RunFolder::Open(files_, run(), true, false), "in use by process");
}

TEST_F(RunFolderTest, AFolderThatHoldsARunIsRefused) {
  ASSERT_OK(Open(false, false)->WriteText("config.json", "{}"));
  EXPECT_USAGE_ERROR(RunFolder::Open(files_, run(), false, false), "already holds a run");
  EXPECT_EQ(Open(true, false)->StoredConfig(), "{}");
}

TEST_F(RunFolderTest, OverwriteDiscardsTheRunAndNothingElse) {
  ASSERT_OK(Open(false, false)->WriteText("config.json", "{}"));
  AddCheckpoint(3);
  ASSERT_OK(Open(true, false)->StartMetrics(0));
  folder_.Write("runs/first/notes.txt", "mine");
  const std::unique_ptr<RunFolder> opened = Open(false, true);
  EXPECT_EQ(NamesIn(run()), (std::vector<std::string>{".lock", "notes.txt"}));
  EXPECT_EQ(opened->StoredConfig(), "");
}

TEST_F(RunFolderTest, NewestCompleteCheckpointCounts) {
  EXPECT_FALSE((*Open(false, false)->NewestCheckpoint()).has_value());
  AddCheckpoint(3);
  AddCheckpoint(12);
  AddCheckpoint(20);
  std::filesystem::remove(run() + "/checkpoints/step-00000020/state.safetensors");
  std::filesystem::create_directories(run() + "/checkpoints/step-00000030.incomplete");
  const std::unique_ptr<RunFolder> opened = Open(true, false);
  const StatusOr<std::optional<std::string>> newest = opened->NewestCheckpoint();
  ASSERT_OK(newest);
  EXPECT_EQ(*newest, run() + "/checkpoints/step-00000012");
  const StatusOr<ResumePoint> point = opened->ReadResumePoint(**newest);
  ASSERT_OK(point);
  EXPECT_EQ(point->step, 12);
  EXPECT_EQ(point->position, (SamplerPosition{2, 5}));
}

TEST_F(RunFolderTest, OnlyBrokenCheckpointsAreAnError) {
  AddCheckpoint(20);
  std::filesystem::remove(run() + "/checkpoints/step-00000020/state.safetensors");
  EXPECT_DATA_ERROR(Open(true, false)->NewestCheckpoint(), "state.safetensors");
}

TEST_F(RunFolderTest, MetadataOfOthersIsRefused) {
  const std::unique_ptr<RunFolder> opened = Open(false, false);
  for (const char* metadata : {"", "[]", "{\"step\":1}", "{\"step\":1,\"epoch\":-1,\"offset\":0}",
                               "{\"step\":\"1\",\"epoch\":0,\"offset\":0}"}) {
    Checkpoint checkpoint;
    checkpoint.step = 1;
    checkpoint.metadata_json = metadata;
    ASSERT_OK(files_.CreateFolders(run() + "/checkpoints"));
    ASSERT_OK(WriteCheckpoint(files_, run() + "/checkpoints/step-00000001", checkpoint));
    EXPECT_DATA_ERROR(opened->ReadResumePoint(run() + "/checkpoints/step-00000001"), "it was not written by train");
  }
}

TEST_F(RunFolderTest, MetricsAreCutWhereARunGoesOn) {
  {
    const std::unique_ptr<RunFolder> opened = Open(false, false);
    ASSERT_OK(opened->StartMetrics(0));
    EvalResult validation;
    validation.loss_sum = 3;
    validation.weight = 2;
    validation.samples = 2;
    for (int64_t step = 0; step < 4; ++step) {
      ASSERT_OK(opened->AppendStep(Line(step)));
      ASSERT_OK(opened->AppendValidation(step, validation));
    }
  }
  const std::unique_ptr<RunFolder> opened = Open(true, false);
  ASSERT_OK(opened->StartMetrics(2));
  ASSERT_OK(opened->AppendStep(Line(2)));
  const std::vector<std::string> lines = LinesOf(run() + "/metrics.jsonl");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[3], R"({"step":1,"val_loss":1.5,"val_samples":2})");
  EXPECT_EQ(lines[4].find(R"({"step":2,"loss":0.3333333333333333,)"), 0u) << lines[4];
}

}  // namespace
}  // namespace onnxtrain
