// SPDX-License-Identifier: Apache-2.0
#include "runtime/run_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

TEST(RunFolderTest, IsHeldOnceAndFreedWithTheLock) {
  const TemporaryFolder folder;
  {
    auto first = RunFolderLock::Acquire(folder.path());
    ASSERT_OK(first);
    EXPECT_USAGE_ERROR(RunFolderLock::Acquire(folder.path()),
                       "run folder '" + folder.path() + "' is in use by process " + std::to_string(getpid()));
    const RunFolderLock moved = std::move(first).value();
    EXPECT_FALSE(RunFolderLock::Acquire(folder.path()).ok());
  }
  EXPECT_OK(RunFolderLock::Acquire(folder.path()));
}

TEST(RunFolderTest, AnotherProcessIsKeptOutUntilTheHolderEnds) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = RunFolderLock::Acquire(folder.path());
    const char answer = lock.ok() ? 'y' : 'n';
    if (write(ready[1], &answer, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_USAGE_ERROR(RunFolderLock::Acquire(folder.path()), "in use by process " + std::to_string(child));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_OK(RunFolderLock::Acquire(folder.path()));
  close(ready[0]);
  close(ready[1]);
}

TEST(RunFolderTest, AMissingFolderIsAnError) {
  const TemporaryFolder folder;
  EXPECT_TRUE(Fails(RunFolderLock::Acquire(folder.Path("none")).status(), StatusCode::kInternal, "cannot create"));
}

}  // namespace
}  // namespace onnxtrain
