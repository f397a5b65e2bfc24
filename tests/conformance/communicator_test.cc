// SPDX-License-Identifier: Apache-2.0
// What every communicator must do; runs on each backend with 1 to 8 ranks and sizes 0, 1, odd and large. Inputs make
// the expected values plain arithmetic.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/backends.h"

namespace onnxtrain {
namespace {

constexpr std::chrono::milliseconds kLong{60000};

class CommunicatorConformance : public testing::TestWithParam<Backend> {
 protected:
  // Runs body(rank, communicator) on one thread per rank.
  template <typename Body>
  void OnRanks(int ranks, std::chrono::milliseconds timeout, Body body) {
    std::unique_ptr<TestGroup> group = GetParam().make_group(ranks, timeout);
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r) threads.emplace_back([&, r] { body(r, group->communicator(r)); });
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

const int kRankCounts[] = {1, 2, 3, 4, 5, 8};
const int64_t kCounts[] = {0, 1, 4, 100, 1023, 5000, 100003};

TEST_P(CommunicatorConformance, AllReduceSums) {
  for (int ranks : kRankCounts) {
    OnRanks(ranks, kLong, [&](int rank, Communicator& communicator) {
      EXPECT_EQ(communicator.rank(), rank);
      EXPECT_EQ(communicator.size(), ranks);
      for (int64_t count : kCounts) {
        std::vector<float> values = Filled<float>(rank, count);
        std::vector<float> result(values.size(), -1.0f);
        ASSERT_TRUE(
            communicator.AllReduce(values.data(), result.data(), count, DType::kFloat, ReduceOp::kSum, nullptr).ok());
        ASSERT_TRUE(
            communicator.AllReduce(values.data(), values.data(), count, DType::kFloat, ReduceOp::kSum, nullptr).ok());
        for (int64_t i = 0; i < count; ++i) {
          ASSERT_EQ(result[static_cast<size_t>(i)], SumOverRanks<float>(ranks, i));
          ASSERT_EQ(values[static_cast<size_t>(i)], SumOverRanks<float>(ranks, i)) << "in place";
        }
      }
    });
  }
}

TEST_P(CommunicatorConformance, AllReduceTakesMaximaAndIntegers) {
  OnRanks(3, kLong, [&](int rank, Communicator& communicator) {
    std::vector<int64_t> values = Filled<int64_t>(rank, 777);
    ASSERT_TRUE(communicator.AllReduce(values.data(), values.data(), 777, DType::kInt64, ReduceOp::kMax, nullptr).ok());
    for (int64_t i = 0; i < 777; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], Element<int64_t>(2, i));
  });
}

TEST_P(CommunicatorConformance, ReduceScatterGivesEachRankItsSlice) {
  for (int ranks : kRankCounts) {
    OnRanks(ranks, kLong, [&](int rank, Communicator& communicator) {
      for (int64_t count : kCounts) {
        std::vector<double> values = Filled<double>(rank, count * ranks);
        std::vector<double> slice(static_cast<size_t>(count));
        ASSERT_TRUE(
            communicator.ReduceScatter(values.data(), slice.data(), count, DType::kDouble, ReduceOp::kSum, nullptr)
                .ok());
        double* mine = values.data() + count * rank;
        ASSERT_TRUE(
            communicator.ReduceScatter(values.data(), mine, count, DType::kDouble, ReduceOp::kSum, nullptr).ok());
        for (int64_t i = 0; i < count; ++i) {
          ASSERT_EQ(slice[static_cast<size_t>(i)], SumOverRanks<double>(ranks, count * rank + i));
          ASSERT_EQ(mine[i], slice[static_cast<size_t>(i)]) << "in place";
        }
      }
    });
  }
}

TEST_P(CommunicatorConformance, AllGatherIsTheReverse) {
  for (int ranks : kRankCounts) {
    OnRanks(ranks, kLong, [&](int rank, Communicator& communicator) {
      for (int64_t count : kCounts) {
        const std::vector<float> mine = Filled<float>(rank, count);
        std::vector<float> all(static_cast<size_t>(count * ranks));
        ASSERT_TRUE(communicator.AllGather(mine.data(), all.data(), count, DType::kFloat, nullptr).ok());
        for (int r = 0; r < ranks; ++r) {
          for (int64_t i = 0; i < count; ++i) ASSERT_EQ(all[static_cast<size_t>(r * count + i)], Element<float>(r, i));
        }
      }
    });
  }
}

TEST_P(CommunicatorConformance, BroadcastCopiesTheRoot) {
  for (int ranks : kRankCounts) {
    OnRanks(ranks, kLong, [&](int rank, Communicator& communicator) {
      std::vector<float> values = Filled<float>(rank, 1001);
      ASSERT_TRUE(communicator.Broadcast(values.data(), values.data(), 1001, DType::kFloat, ranks - 1, nullptr).ok());
      for (int64_t i = 0; i < 1001; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], Element<float>(ranks - 1, i));
    });
  }
}

// Sums whose value depends on the order of addition must still have the same bits everywhere, every time.
TEST_P(CommunicatorConformance, SumsHaveTheSameBitsOnEveryRankAndInEveryRun) {
  constexpr int kRanks = 5;
  constexpr int64_t kCount = 3001;
  std::vector<std::vector<float>> results(kRanks * 3, std::vector<float>(kCount));
  for (int run = 0; run < 3; ++run) {
    OnRanks(kRanks, kLong, [&](int rank, Communicator& communicator) {
      std::vector<float> values(kCount);
      for (int64_t i = 0; i < kCount; ++i)
        values[static_cast<size_t>(i)] = 1.0f / static_cast<float>(3 + rank * 7 + i % 13);
      ASSERT_TRUE(communicator
                      .AllReduce(values.data(), results[static_cast<size_t>(run * kRanks + rank)].data(), kCount,
                                 DType::kFloat, ReduceOp::kSum, nullptr)
                      .ok());
    });
  }
  for (const std::vector<float>& result : results) EXPECT_EQ(result, results[0]);
}

TEST_P(CommunicatorConformance, ARankThatStaysAwayIsNamedAfterTheTimeout) {
  OnRanks(3, std::chrono::milliseconds(50), [&](int rank, Communicator& communicator) {
    if (rank == 1) return;
    float value = 1;
    const Status status = communicator.AllReduce(&value, &value, 1, DType::kFloat, ReduceOp::kSum, nullptr);
    EXPECT_EQ(status.code(), StatusCode::kCommunication);
    EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
  });
}

TEST_P(CommunicatorConformance, AbortWakesPendingAndFailsLaterCalls) {
  OnRanks(2, kLong, [&](int rank, Communicator& communicator) {
    float value = 1;
    if (rank == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      communicator.Abort(CommunicationError("first reason"));
      communicator.Abort(CommunicationError("second reason"));
    }
    const Status status = communicator.AllReduce(&value, &value, 1, DType::kFloat, ReduceOp::kSum, nullptr);
    EXPECT_EQ(status.message(), "first reason");
  });
}

TEST_P(CommunicatorConformance, DifferentCollectivesAreRefusedOnAllRanks) {
  OnRanks(2, kLong, [&](int rank, Communicator& communicator) {
    std::vector<float> values(16);
    const Status status =
        rank == 0 ? communicator.AllReduce(values.data(), values.data(), 8, DType::kFloat, ReduceOp::kSum, nullptr)
                  : communicator.AllGather(values.data(), values.data(), 8, DType::kFloat, nullptr);
    EXPECT_EQ(status.code(), StatusCode::kCommunication);
    EXPECT_NE(status.message().find("AllGather"), std::string::npos) << status.message();
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, CommunicatorConformance, testing::ValuesIn(AllBackends()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace onnxtrain
