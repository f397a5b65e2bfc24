// SPDX-License-Identifier: Apache-2.0
// The watchdog on pages that the test writes, and the order of collectives; no CUDA.
#include "cuda_ops/collective_watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "cuda_ops/collective_call.h"
#include "cuda_ops/collective_order.h"

namespace onnxtrain {
namespace {

using std::chrono::milliseconds;

const CollectiveCall kCall = {CollectiveKind::kReduceScatter, DType::kBfloat16, 0, 4096};

void Start(ProgressPage& page, const CollectiveCall& call) {
  page.calls[(page.started + 1) % kProgressCalls] = call.Pack();
  __atomic_store_n(&page.started, page.started + 1, __ATOMIC_RELEASE);
}
void Complete(ProgressPage& page) { __atomic_store_n(&page.completed, page.completed + 1, __ATOMIC_RELEASE); }

WatchdogOptions OptionsOf(const std::vector<ProgressPage>& pages, int world_size) {
  WatchdogOptions options;
  for (const ProgressPage& page : pages) options.pages.push_back(&page);
  options.world_size = world_size;
  options.timeout = milliseconds(30);
  return options;
}

TEST(CollectiveWatchdog, ReportsWhoWaitsAndWhoDidNotCome) {
  std::vector<ProgressPage> pages(3);
  for (int rank : {0, 2}) Start(pages[static_cast<size_t>(rank)], kCall);
  WatchdogOptions options = OptionsOf(pages, 3);
  std::promise<Status> failure;
  options.on_failure = [&](const Status& status) { failure.set_value(status); };
  const CollectiveWatchdog watchdog(options);
  const Status status = failure.get_future().get();
  EXPECT_EQ(status.code(), StatusCode::kCommunication);
  EXPECT_EQ(
      status.message(),
      "collective 1 (ReduceScatter of 4096 bfloat16) stood still for 30 ms: rank 0, rank 2 wait in it, rank 1 did "
      "not come (last completed by rank 0: 0, rank 1: 0, rank 2: 0); a slower rank needs a longer --timeout");
}

TEST(CollectiveWatchdog, BlamesAnotherProcessWhenAllLocalRanksHaveCome) {
  std::vector<ProgressPage> pages(1);
  Start(pages[0], kCall);
  WatchdogOptions options = OptionsOf(pages, 2);
  options.first_rank = 1;
  EXPECT_THAT(DescribeStandstill(options, 0), testing::HasSubstr("rank 1 waits in it, a rank of another process did"));
}

TEST(CollectiveWatchdog, LeavesRanksAloneThatMoveOrAreIdle) {
  std::vector<ProgressPage> pages(2);
  WatchdogOptions options = OptionsOf(pages, 2);
  options.timeout = milliseconds(2000);
  options.on_failure = [](const Status& status) { ADD_FAILURE() << status.message(); };
  const CollectiveWatchdog watchdog(options);
  for (int i = 0; i < 40; ++i) {
    Start(pages[0], kCall);
    std::this_thread::sleep_for(milliseconds(1));
    Complete(pages[0]);
  }
}

TEST(CollectiveWatchdog, ReportsWhatItsLookFinds) {
  std::vector<ProgressPage> pages(1);
  WatchdogOptions options = OptionsOf(pages, 2);
  options.look = [] { return CommunicationError("a peer has gone"); };
  std::promise<Status> failure;
  options.on_failure = [&](const Status& status) { failure.set_value(status); };
  const CollectiveWatchdog watchdog(options);
  EXPECT_EQ(failure.get_future().get().message(), "a peer has gone");
}

TEST(CollectiveHistory, KeepsTheLastThirtyTwo) {
  ProgressPage page;
  for (int64_t i = 1; i <= 40; ++i) {
    Start(page, {CollectiveKind::kAllReduce, DType::kFloat, 0, i});
    if (i < 40) Complete(page);
  }
  const std::string history = DescribeHistory(page);
  EXPECT_EQ(std::count(history.begin(), history.end(), '\n'), 32);
  EXPECT_EQ(history.substr(0, history.find('\n')), "9 AllReduce of 9 float completed");
  EXPECT_THAT(history, testing::EndsWith("40 AllReduce of 40 float started\n"));
}

TEST(CollectiveCall, SurvivesPacking) {
  for (const CollectiveCall& call :
       {kCall, CollectiveCall{CollectiveKind::kBroadcast, DType::kUint64, 16383, (int64_t{1} << 40) - 1},
        CollectiveCall{CollectiveKind::kAllGather, DType::kBool, 0, 0}}) {
    EXPECT_EQ(CollectiveCall::Unpack(call.Pack()), call);
    EXPECT_NE(call.Pack(), 0u);
  }
}

TEST(CollectiveOrder, ComparesTheSameNumbersOfEachRank) {
  CollectiveOrder order(4, 2);
  const CollectiveCall other = {CollectiveKind::kAllGather, DType::kBfloat16, 0, 4096};
  EXPECT_TRUE(order.Next(0, kCall).ok());
  EXPECT_TRUE(order.Next(0, other).ok());
  EXPECT_TRUE(order.Next(1, kCall).ok());
  const Status status = order.Next(1, kCall);
  EXPECT_EQ(status.code(), StatusCode::kCommunication);
  EXPECT_EQ(status.message(),
            "ranks issue different collectives as their number 2: rank 4 AllGather of 4096 bfloat16, rank 5 "
            "ReduceScatter of 4096 bfloat16");
  EXPECT_EQ(order.Issued(), "rank 4: 2, rank 5: 2");
}

TEST(CollectiveOrder, LetsARankFallFarBehind) {
  CollectiveOrder order(0, 2);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(order.Next(0, kCall).ok());
  EXPECT_TRUE(order.Next(1, {CollectiveKind::kAllGather, DType::kFloat, 0, 1}).ok());
}

}  // namespace
}  // namespace onnxtrain
