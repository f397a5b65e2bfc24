// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/cudnn_plan_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

CudnnPlanFiles Open(const std::string& folder, const std::string& made_for = "cuDNN 1 on a GPU") {
  return CudnnPlanFiles(std::make_unique<PosixFileSystem>(), folder, made_for);
}

TEST(CudnnPlanFiles, GiveBackWhatWasWritten) {
  const TemporaryFolder folder;
  Open(folder.path() + "/cache").Write("a graph", "{\"plan\": 1}");
  CudnnPlanFiles files = Open(folder.path() + "/cache");
  EXPECT_EQ(files.Read("a graph"), "{\"plan\": 1}");
  EXPECT_EQ(files.Read("another graph"), std::nullopt);
  EXPECT_THAT(files.notes(), IsEmpty());
}

TEST(CudnnPlanFiles, OfAnotherLibraryAreOthers) {
  const TemporaryFolder folder;
  Open(folder.path()).Write("a graph", "{}");
  EXPECT_EQ(Open(folder.path(), "cuDNN 2 on a GPU").Read("a graph"), std::nullopt);
}

TEST(CudnnPlanFiles, ThatAreBrokenAreNotUsedAndNamed) {
  const TemporaryFolder folder;
  CudnnPlanFiles files = Open(folder.path());
  files.Write("a graph", "{\"plan\": 1}");
  std::ofstream(files.PathOf("a graph"), std::ios::app) << "x";
  EXPECT_EQ(files.Read("a graph"), std::nullopt);
  EXPECT_THAT(files.notes(), ElementsAre(HasSubstr(files.PathOf("a graph") + " is not used")));
  files.Write("a graph", "{\"plan\": 2}");
  EXPECT_EQ(files.Read("a graph"), "{\"plan\": 2}");
}

TEST(CudnnPlanFiles, ThatCannotBeWrittenAreSaidOnce) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/file") << "in the way";
  CudnnPlanFiles files = Open(folder.path() + "/file/cache");
  files.Write("a graph", "{}");
  files.Write("a graph", "{}");
  EXPECT_THAT(files.notes(), ElementsAre(HasSubstr("plans of cuDNN are not kept")));
}

TEST(CudnnPlanFiles, AreNoneWithoutAFolder) {
  CudnnPlanFiles files = Open("");
  files.Write("a graph", "{}");
  EXPECT_EQ(files.Read("a graph"), std::nullopt);
  EXPECT_THAT(files.notes(), IsEmpty());
}

}  // namespace
}  // namespace onnxtrain
