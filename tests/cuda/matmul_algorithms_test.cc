// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/matmul_algorithms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kHere = "cuBLASLt 130100 on compute capability 9.0 with 132 multiprocessors";
constexpr MatmulAlgorithm kFirst = {1, 2, 3, 4, 5, 6, 7, UINT64_MAX};
constexpr MatmulAlgorithm kSecond = {0x123456789abcdef0, 0, 0, 0, 9, 0, 0, 1};

std::unique_ptr<MatmulAlgorithms> Open(const std::string& folder, const std::string& made_for = kHere) {
  return MatmulAlgorithms::Open(std::make_unique<PosixFileSystem>(), folder, made_for);
}

TEST(MatmulAlgorithmsFile, GivesBackWhatWasKept) {
  const TemporaryFolder folder;
  const std::string below = folder.Path("not/yet/there");
  {
    const auto table = Open(below);
    table->Keep("float 5x7", kSecond);
    table->Keep("float 5x7", kFirst);
    table->Keep("end 3", kSecond);
    EXPECT_THAT(table->notes(), IsEmpty());
  }
  const auto table = Open(below);
  EXPECT_THAT(table->notes(), IsEmpty());
  EXPECT_EQ(table->Find("float 5x7"), kFirst);
  EXPECT_EQ(table->Find("end 3"), kSecond);
  EXPECT_EQ(table->Find("float 5x8"), std::nullopt);
  EXPECT_THAT(PosixFileSystem().List(below).value(), SizeIs(1));  // nothing temporary stays
}

TEST(MatmulAlgorithmsFile, IsNotWrittenWithoutAFolder) {
  const auto table = Open("");
  table->Keep("float 5x7", kFirst);
  EXPECT_EQ(table->Find("float 5x7"), kFirst);
  EXPECT_EQ(table->path(), "");
  EXPECT_THAT(table->notes(), IsEmpty());
}

TEST(MatmulAlgorithmsFile, BelongsToOneGpuAndOneLibrary) {
  const TemporaryFolder folder;
  Open(folder.path())->Keep("float 5x7", kFirst);
  const std::string elsewhere = "cuBLASLt 130200 on compute capability 9.0 with 132 multiprocessors";
  const auto other = Open(folder.path(), elsewhere);
  EXPECT_EQ(other->Find("float 5x7"), std::nullopt);
  EXPECT_THAT(other->notes(), IsEmpty());

  // Copied by hand.
  (void)folder.Write(std::string_view(other->path()).substr(folder.path().size() + 1),
                     ReadText(Open(folder.path())->path()));
  const auto foreign = Open(folder.path(), elsewhere);
  EXPECT_EQ(foreign->Find("float 5x7"), std::nullopt);
  EXPECT_THAT(foreign->notes(), ElementsAre(HasSubstr("130200")));
  EXPECT_THAT(foreign->notes(), ElementsAre(HasSubstr(foreign->path())));
  foreign->Keep("float 5x7", kSecond);
  const auto rebuilt = Open(folder.path(), elsewhere);
  EXPECT_THAT(rebuilt->notes(), IsEmpty());
  EXPECT_EQ(rebuilt->Find("float 5x7"), kSecond);
}

class BrokenMatmulAlgorithmsFile : public testing::Test {
 protected:
  BrokenMatmulAlgorithmsFile() {
    const auto table = Open(folder_.path());
    table->Keep("float 5x7", kFirst);
    table->Keep("double 1x1", kSecond);
    path_ = table->path();
    text_ = ReadText(path_);
  }
  void ExpectRefused(const std::string& text) {
    (void)folder_.Write(std::string_view(path_).substr(folder_.path().size() + 1), text);
    const auto table = Open(folder_.path());
    EXPECT_THAT(table->notes(), ElementsAre(HasSubstr("is not used"))) << text;
    EXPECT_EQ(table->Find("float 5x7"), std::nullopt);
    EXPECT_EQ(table->Find("double 1x1"), std::nullopt);
  }

  TemporaryFolder folder_;
  std::string path_;
  std::string text_;
};

TEST_F(BrokenMatmulAlgorithmsFile, IsRefusedWhereverItIsCut) {
  for (size_t length = 0; length < text_.size(); ++length) ExpectRefused(text_.substr(0, length));
}

TEST_F(BrokenMatmulAlgorithmsFile, IsRefusedWhicheverByteIsChanged) {
  for (size_t at = 0; at < text_.size(); ++at) {
    for (const char mask : {'\x01', '\x20', '\x2a'}) {
      std::string changed = text_;
      changed[at] = static_cast<char>(changed[at] ^ mask);
      ExpectRefused(changed);
    }
  }
}

TEST_F(BrokenMatmulAlgorithmsFile, IsRefusedWithMoreBehindItOrALineTwice) {
  ExpectRefused(text_ + "\n");
  ExpectRefused(text_ + text_);
  const size_t first = text_.find('\n', text_.find('\n') + 1) + 1;
  const size_t second = text_.find('\n', first) + 1;
  ExpectRefused(text_.substr(0, second) + text_.substr(first));
}

// At every operation of the file system: the file is that of before or the new one, and the table in memory serves on.
TEST(MatmulAlgorithmsFile, IsWholeWhateverHappensWhileItIsWritten) {
  for (const Fault fault : {Fault::kError, Fault::kDiskFull, Fault::kEnd}) {
    bool met = true;
    for (int64_t at = 0; met; ++at) {
      SCOPED_TRACE(at);
      const TemporaryFolder folder;
      Open(folder.path())->Keep("float 5x7", kFirst);
      auto files = std::make_unique<FaultyFileSystem>(fault, at, 40);
      const FaultyFileSystem& faulty = *files;
      const auto table = MatmulAlgorithms::Open(std::move(files), folder.path(), kHere);
      table->Keep("double 1x1", kSecond);
      met = faulty.operations() > at;
      EXPECT_EQ(table->Find("double 1x1"), kSecond);
      if (met) {
        EXPECT_THAT(table->notes(), ElementsAre(HasSubstr("not kept")));
        table->Keep("double 2x2", kSecond);  // is not tried again
        EXPECT_THAT(table->notes(), SizeIs(1));
      }
      const auto found = Open(folder.path());
      EXPECT_THAT(found->notes(), IsEmpty());
      EXPECT_EQ(found->Find("float 5x7"), kFirst);
    }
  }
}

TEST(MatmulAlgorithmsFile, IsWrittenByManyThreadsAndTables) {
  const TemporaryFolder folder;
  const auto shared = Open(folder.path());
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const auto own = Open(folder.path());
      for (int i = 0; i < 5; ++i) {
        const std::string product = std::to_string(thread) + "," + std::to_string(i);
        shared->Keep(product, {thread});
        own->Keep(product, {thread});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Open(folder.path())->notes(), IsEmpty());
  shared->Keep("last", kFirst);
  const auto found = Open(folder.path());
  for (uint64_t thread = 0; thread < 4; ++thread) {
    EXPECT_EQ(found->Find(std::to_string(thread) + ",4"), MatmulAlgorithm{thread});
  }
  EXPECT_EQ(found->Find("last"), kFirst);
}

}  // namespace
}  // namespace onnxtrain
