// SPDX-License-Identifier: Apache-2.0
// What every communicator must do; runs on each backend with 1 to 8 ranks and sizes 0, 1, odd and large. Inputs make
// the expected values plain arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/support/backends.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

constexpr std::chrono::milliseconds kLong{60000};

class CommunicatorConformance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string reason = WhyNot(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }

  // Runs body(device, communicator) on one thread per rank. Skips the test, by name, where there cannot be so many.
  template <typename Body>
  void OnRanks(int ranks, std::chrono::milliseconds timeout, Body body) {
    StatusOr<std::unique_ptr<Backend>> opened = TryTestBackend(GetParam(), ranks, timeout);
    if (opened.status().code() == StatusCode::kUsage) GTEST_SKIP() << opened.status().message();
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const std::unique_ptr<Backend> backend = *std::move(opened);
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] { body(backend->device(r), backend->communicator(r)); });
    for (std::thread& thread : threads) thread.join();
  }
};

template <typename T>
T Element(int rank, int64_t index) {
  return static_cast<T>((rank + 1) * 1000 + index % 97);
}

template <typename T>
T SumOverRanks(int ranks, int64_t index) {
  T sum = 0;
  for (int r = 0; r < ranks; ++r) sum += Element<T>(r, index);
  return sum;
}

template <typename T>
std::vector<T> Filled(int rank, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = Element<T>(rank, i);
  return values;
}

// Elements [begin, begin + count) of the sum over ranks.
template <typename T>
std::vector<T> Sums(int ranks, int64_t begin, int64_t count) {
  std::vector<T> sums;
  for (int64_t i = begin; i < begin + count; ++i) sums.push_back(SumOverRanks<T>(ranks, i));
  return sums;
}

const int kRankCounts[] = {1, 2, 3, 4, 5, 8};
const int64_t kCounts[] = {0, 1, 4, 100, 1023, 5000, 100003};

TEST_P(CommunicatorConformance, AllReduceSums) {
  for (int ranks : kRankCounts) {
    OnRanks(ranks, kLong, [&](Device& device, Communicator& communicator) {
      const int rank = communicator.rank();
      EXPECT_EQ(communicator.size(), ranks);
      for (int64_t count : kCounts) {
        const DeviceArray<float> values(device, Filled<float>(rank, count));
        const DeviceArray<float> result(device, std::vector<float>(static_cast<size_t>(count), -1.0f));
        ASSERT_OK(communicator.AllReduce(values.data(), result.data(), count, DType::kFloat, ReduceOp::kSum, nullptr));
        ASSERT_OK(communicator.AllReduce(values.data(), values.data(), count, DType::kFloat, ReduceOp::kSum, nullptr));
        EXPECT_EQ(result.Read(), Sums<float>(ranks, 0, count));
        EXPECT_EQ(values.Read(), Sums<float>(ranks, 0, count)) << "in place";
      }
    });
  }
}

TEST_P(CommunicatorConformance, AllReduceTakesMaximaAndIntegers) {
  OnRanks(3, kLong, [&](Device& device, Communicator& communicator) {
    const DeviceArray<int64_t> values(device, Filled<int64_t>(communicator.rank(), 777));
    ASSERT_OK(communicator.AllReduce(values.data(), values.data(), 777, DType::kInt64, ReduceOp::kMax, nullptr));
    EXPECT_EQ(values.Read(), Filled<int64_t>(2, 777));
  });
}

TEST_P(CommunicatorConformance, ReduceScatterGivesEachRankItsSlice) {
  for (int ranks : kRankCounts) {
    OnRanks(ranks, kLong, [&](Device& device, Communicator& communicator) {
      const int rank = communicator.rank();
      for (int64_t count : kCounts) {
        const DeviceArray<double> values(device, Filled<double>(rank, count * ranks));
        const DeviceArray<double> slice(device, std::vector<double>(static_cast<size_t>(count)));
        ASSERT_OK(
            communicator.ReduceScatter(values.data(), slice.data(), count, DType::kDouble, ReduceOp::kSum, nullptr));
        double* const mine = values.data() + count * rank;
        ASSERT_OK(communicator.ReduceScatter(values.data(), mine, count, DType::kDouble, ReduceOp::kSum, nullptr));
        EXPECT_EQ(slice.Read(), Sums<double>(ranks, count * rank, count));
        const std::vector<double> all = values.Read();
        EXPECT_TRUE(std::equal(all.begin() + count * rank, all.begin() + count * (rank + 1), slice.Read().begin()))
            << "in place";
      }
    });
  }
}

TEST_P(CommunicatorConformance, AllGatherIsTheReverse) {
  for (int ranks : kRankCounts) {
    OnRanks(ranks, kLong, [&](Device& device, Communicator& communicator) {
      const int rank = communicator.rank();
      for (int64_t count : kCounts) {
        const DeviceArray<float> mine(device, Filled<float>(rank, count));
        const DeviceArray<float> all(device, std::vector<float>(static_cast<size_t>(count * ranks)));
        ASSERT_OK(communicator.AllGather(mine.data(), all.data(), count, DType::kFloat, nullptr));
        std::vector<float> expected;
        for (int r = 0; r < ranks; ++r) {
          const std::vector<float> of_rank = Filled<float>(r, count);
          expected.insert(expected.end(), of_rank.begin(), of_rank.end());
        }
        EXPECT_EQ(all.Read(), expected);
        ASSERT_OK(communicator.AllGather(all.data() + count * rank, all.data(), count, DType::kFloat, nullptr));
        EXPECT_EQ(all.Read(), expected) << "in place";
      }
    });
  }
}

TEST_P(CommunicatorConformance, BroadcastCopiesTheRoot) {
  for (int ranks : kRankCounts) {
    OnRanks(ranks, kLong, [&](Device& device, Communicator& communicator) {
      const DeviceArray<float> values(device, Filled<float>(communicator.rank(), 1001));
      ASSERT_OK(communicator.Broadcast(values.data(), values.data(), 1001, DType::kFloat, ranks - 1, nullptr));
      EXPECT_EQ(values.Read(), Filled<float>(ranks - 1, 1001));
    });
  }
}

// Sums whose value depends on the order of addition must still have the same bits everywhere, every time.
TEST_P(CommunicatorConformance, SumsHaveTheSameBitsOnEveryRankAndInEveryRun) {
  constexpr int kRanks = 5;
  constexpr int64_t kCount = 3001;
  std::vector<std::vector<float>> results(kRanks * 3);
  for (int run = 0; run < 3; ++run) {
    OnRanks(kRanks, kLong, [&](Device& device, Communicator& communicator) {
      const int rank = communicator.rank();
      std::vector<float> values(kCount);
      for (int64_t i = 0; i < kCount; ++i)
        values[static_cast<size_t>(i)] = 1.0f / static_cast<float>(3 + rank * 7 + i % 13);
      const DeviceArray<float> sent(device, values);
      ASSERT_OK(communicator.AllReduce(sent.data(), sent.data(), kCount, DType::kFloat, ReduceOp::kSum, nullptr));
      results[static_cast<size_t>(run * kRanks + rank)] = sent.Read();
    });
  }
  for (const std::vector<float>& result : results) EXPECT_EQ(result, results[0]);
}

TEST_P(CommunicatorConformance, ARankThatStaysAwayIsNamedAfterTheTimeout) {
  OnRanks(3, std::chrono::milliseconds(50), [&](Device& device, Communicator& communicator) {
    if (communicator.rank() == 1) return;
    const DeviceArray<float> value(device, {1});
    const Status status = communicator.AllReduce(value.data(), value.data(), 1, DType::kFloat, ReduceOp::kSum, nullptr);
    EXPECT_EQ(status.code(), StatusCode::kCommunication);
    EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
  });
}

TEST_P(CommunicatorConformance, AbortWakesPendingAndFailsLaterCalls) {
  OnRanks(2, kLong, [&](Device& device, Communicator& communicator) {
    const DeviceArray<float> value(device, {1});
    if (communicator.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      communicator.Abort(CommunicationError("first reason"));
      communicator.Abort(CommunicationError("second reason"));
    }
    const Status status = communicator.AllReduce(value.data(), value.data(), 1, DType::kFloat, ReduceOp::kSum, nullptr);
    EXPECT_EQ(status.message(), "first reason");
  });
}

TEST_P(CommunicatorConformance, DifferentCollectivesAreRefusedOnAllRanks) {
  OnRanks(2, kLong, [&](Device& device, Communicator& communicator) {
    const DeviceArray<float> values(device, std::vector<float>(16));
    const Status status =
        communicator.rank() == 0
            ? communicator.AllReduce(values.data(), values.data(), 8, DType::kFloat, ReduceOp::kSum, nullptr)
            : communicator.AllGather(values.data() + 8, values.data(), 8, DType::kFloat, nullptr);
    EXPECT_EQ(status.code(), StatusCode::kCommunication);
    EXPECT_NE(status.message().find("AllGather"), std::string::npos) << status.message();
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, CommunicatorConformance, testing::ValuesIn(AllBackends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace onnxtrain
