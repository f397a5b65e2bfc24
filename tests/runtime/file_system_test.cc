// SPDX-License-Identifier: Apache-2.0
#include "runtime/file_system.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/faulty_file_system.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

Status WriteText(FileSystem& files, const std::string& path, const std::string& text) {
  return WriteFileAtomically(files, path, [&](WritableFile& file) { return file.Append(text); });
}

TEST(FileSystemTest, WritesListsRenamesRemoves) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  ASSERT_OK(files.CreateFolders(folder.Path("a/b")));
  ASSERT_OK(files.CreateFolders(folder.Path("a/b")));
  ASSERT_OK(WriteText(files, folder.Path("a/z"), ""));
  ASSERT_OK(WriteText(files, folder.Path("a/c"), "text"));
  EXPECT_EQ(*files.List(folder.Path("a")), (std::vector<std::string>{"b", "c", "z"}));
  ASSERT_OK(files.Rename(folder.Path("a/c"), folder.Path("a/z")));
  EXPECT_EQ(ReadText(folder.Path("a/z")), "text");
  auto file = files.OpenForAppend(folder.Path("a/z"));
  ASSERT_OK(file);
  ASSERT_OK((*file)->Append(" more"));
  ASSERT_OK((*file)->Close());
  EXPECT_EQ(ReadText(folder.Path("a/z")), "text more");
  ASSERT_OK(files.Remove(folder.Path("a")));
  ASSERT_OK(files.Remove(folder.Path("a")));
  EXPECT_FALSE(files.Exists(folder.Path("a")));
  EXPECT_TRUE(files.List(folder.Path("a"))->empty());
}

TEST(FileSystemTest, ErrorsNameThePath) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  EXPECT_TRUE(Fails(files.Create(folder.Path("none/x")).status(), StatusCode::kInternal, folder.Path("none/x")));
  EXPECT_TRUE(Fails(files.Rename(folder.Path("x"), folder.Path("y")), StatusCode::kInternal, "cannot rename"));
  folder.Write("file", "x");
  EXPECT_FALSE(files.CreateFolders(folder.Path("file/x")).ok());
  EXPECT_FALSE(files.CreateFolders(folder.Path("file")).ok());
  EXPECT_EQ(ParentFolder("a"), ".");
  EXPECT_EQ(ParentFolder("a/b"), "a");
}

// /dev/full accepts an open and refuses every write, as a full disk does.
TEST(FileSystemTest, AFullDiskIsResourceExhausted) {
  PosixFileSystem files;
  if (!files.Exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this system";
  auto file = files.OpenForAppend("/dev/full");
  ASSERT_OK(file);
  EXPECT_TRUE(Fails((*file)->Append("x"), StatusCode::kResourceExhausted, "disk full: cannot write '/dev/full'"));
}

TEST(FileSystemTest, ShortWritesAreContinued) {
  const TemporaryFolder folder;
  FaultyFileSystem files(Fault::kNone, 0, 3);
  const std::string text = "a text of more than three bytes";
  ASSERT_OK(WriteText(files, folder.Path("x"), text));
  EXPECT_EQ(ReadText(folder.Path("x")), text);
}

TEST(FileSystemTest, AnAtomicWriteFailsWithoutTrace) {
  for (const Fault fault : {Fault::kError, Fault::kDiskFull, Fault::kEnd}) {
    for (int64_t at = 0;; ++at) {
      const TemporaryFolder folder;
      folder.Write("x", "old");
      FaultyFileSystem files(fault, at, 3);
      const Status status = WriteText(files, folder.Path("x"), "new text");
      if (files.operations() <= at) {
        EXPECT_OK(status);
        EXPECT_GE(at, 7);  // create, three writes, sync, close, rename, sync of the folder
        break;
      }
      EXPECT_FALSE(status.ok());
      const std::string content = ReadText(folder.Path("x"));
      EXPECT_TRUE(content == "old" || content == "new text") << content;
      PosixFileSystem real;
      // Only the end of the process leaves the temporary file.
      if (fault != Fault::kEnd) {
        EXPECT_EQ(*real.List(folder.path()), std::vector<std::string>{"x"}) << at;
      }
    }
  }
}

}  // namespace
}  // namespace onnxtrain
