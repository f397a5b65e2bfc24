// SPDX-License-Identifier: Apache-2.0
// The communicators of GPUs on the simulated NCCL and CUDA runtime, 1 to 4 ranks.
#include "cuda_ops/nccl_communicator.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "cuda_ops/rendezvous.h"
#include "tests/cuda/gpu_array.h"
#include "tests/simulated_cuda/nccl_control.h"

extern "C" void simulated_cuda_fail_at(int64_t n);  // as simulated_nccl_fail_at, of the CUDA runtime

namespace onnxtrain {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kLong{60000};
const int64_t kCounts[] = {0, 1, 3, 1023};

std::vector<int> Devices(int ranks) {
  std::vector<int> devices;
  for (int r = 0; r < ranks; ++r) devices.push_back(r);
  return devices;
}

NcclGroupOptions OptionsFor(int ranks, milliseconds timeout = kLong) {
  NcclGroupOptions options;
  options.devices = Devices(ranks);
  options.timeout = timeout;
  return options;
}

// body(rank, communicator) on one thread per rank, each with its GPU current.
template <typename Body>
void OnRanks(NcclGroup& group, Body body) {
  std::vector<std::thread> threads;
  for (int r = 0; r < group.size(); ++r) {
    threads.emplace_back([&, r] {
      CHECK(cudaSetDevice(r) == cudaSuccess);
      body(r, group.communicator(r));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

template <typename Body>
void OnRanks(int ranks, milliseconds timeout, Body body) {
  StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(OptionsFor(ranks, timeout));
  ASSERT_TRUE(group.ok()) << group.status().message();
  OnRanks(**group, body);
}

template <typename T>
std::vector<T> Filled(int rank, int64_t count) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>((rank + 1) * 10 + i % 13));
  return values;
}

template <typename T>
std::vector<T> SummedOverRanks(int ranks, int64_t count) {
  std::vector<T> sums(static_cast<size_t>(count));
  for (int r = 0; r < ranks; ++r) {
    const std::vector<T> values = Filled<T>(r, count);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<T>(sums[i] + values[i]);
  }
  return sums;
}

class NcclCommunicator : public testing::Test {
 protected:
  void TearDown() override {
    simulated_nccl_fail_at(-1);
    simulated_nccl_drop_rank(-1);
    simulated_nccl_delay(-1, 0);
    simulated_nccl_delay_abort(0);
    EXPECT_EQ(simulated_nccl_counter("live_communicators"), 0);
  }
};

TEST_F(NcclCommunicator, AllReduceSumsInPlaceAndNot) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    OnRanks(ranks, kLong, [&](int rank, Communicator& communicator) {
      EXPECT_EQ(communicator.rank(), rank);
      EXPECT_EQ(communicator.size(), ranks);
      for (int64_t count : kCounts) {
        const GpuArray<float> values(Filled<float>(rank, count));
        const GpuArray<float> result(static_cast<size_t>(count));
        ASSERT_TRUE(
            communicator.AllReduce(values.data(), result.data(), count, DType::kFloat, ReduceOp::kSum, nullptr).ok());
        ASSERT_TRUE(
            communicator.AllReduce(values.data(), values.data(), count, DType::kFloat, ReduceOp::kSum, nullptr).ok());
        EXPECT_EQ(result.Read(), SummedOverRanks<float>(ranks, count));
        EXPECT_EQ(values.Read(), SummedOverRanks<float>(ranks, count));
      }
    });
  }
}

TEST_F(NcclCommunicator, ReducesEveryType) {
  OnRanks(3, kLong, [](int rank, Communicator& communicator) {
    auto check = [&](auto zero, DType dtype) {
      using T = decltype(zero);
      const GpuArray<T> values(Filled<T>(rank, 7));
      ASSERT_TRUE(communicator.AllReduce(values.data(), values.data(), 7, dtype, ReduceOp::kMax, nullptr).ok());
      EXPECT_EQ(values.Read(), Filled<T>(2, 7)) << NameOf(dtype);
    };
    check(float{}, DType::kFloat);
    check(double{}, DType::kDouble);
    check(int8_t{}, DType::kInt8);
    check(uint8_t{}, DType::kUint8);
    check(int32_t{}, DType::kInt32);
    check(uint32_t{}, DType::kUint32);
    check(int64_t{}, DType::kInt64);
    check(uint64_t{}, DType::kUint64);
  });
}

TEST_F(NcclCommunicator, SumsHalfTypes) {
  OnRanks(2, kLong, [](int rank, Communicator& communicator) {
    const float mine = rank == 0 ? 1.5f : 2.25f;
    const GpuArray<uint16_t> values({FloatToFloat16(mine), FloatToBfloat16(mine)});
    uint16_t* data = values.data();
    ASSERT_TRUE(communicator.AllReduce(data, data, 1, DType::kFloat16, ReduceOp::kSum, nullptr).ok());
    ASSERT_TRUE(communicator.AllReduce(data + 1, data + 1, 1, DType::kBfloat16, ReduceOp::kSum, nullptr).ok());
    EXPECT_EQ(values.Read(), (std::vector<uint16_t>{FloatToFloat16(3.75f), FloatToBfloat16(3.75f)}));
  });
}

TEST_F(NcclCommunicator, MovesTypesThatNcclLacksAndRefusesToReduceThem) {
  OnRanks(2, kLong, [](int rank, Communicator& communicator) {
    const GpuArray<int16_t> mine(Filled<int16_t>(rank, 3));
    const GpuArray<int16_t> all(6);
    ASSERT_TRUE(communicator.AllGather(mine.data(), all.data(), 3, DType::kInt16, nullptr).ok());
    EXPECT_EQ(all.Read(), (std::vector<int16_t>{10, 11, 12, 20, 21, 22}));
    const Status refused = communicator.AllReduce(mine.data(), mine.data(), 3, DType::kInt16, ReduceOp::kSum, nullptr);
    EXPECT_EQ(refused.code(), StatusCode::kUsage);
    EXPECT_THAT(refused.message(), HasSubstr("int16"));
  });
}

TEST_F(NcclCommunicator, ReduceScatterAndAllGatherWorkInPlace) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    OnRanks(ranks, kLong, [&](int rank, Communicator& communicator) {
      for (int64_t count : kCounts) {
        const GpuArray<float> bucket(Filled<float>(rank, count * ranks));
        float* shard = bucket.data() + count * rank;
        ASSERT_TRUE(
            communicator.ReduceScatter(bucket.data(), shard, count, DType::kFloat, ReduceOp::kSum, nullptr).ok());
        ASSERT_TRUE(communicator.AllGather(shard, bucket.data(), count, DType::kFloat, nullptr).ok());
        EXPECT_EQ(bucket.Read(), SummedOverRanks<float>(ranks, count * ranks));
      }
    });
  }
}

TEST_F(NcclCommunicator, BroadcastCopiesTheRoot) {
  OnRanks(3, kLong, [](int rank, Communicator& communicator) {
    const GpuArray<double> values(Filled<double>(rank, 5));
    ASSERT_TRUE(communicator.Broadcast(values.data(), values.data(), 5, DType::kDouble, 2, nullptr).ok());
    EXPECT_EQ(values.Read(), Filled<double>(2, 5));
  });
}

TEST_F(NcclCommunicator, EnqueuesOnTheCallersStream) {
  OnRanks(2, kLong, [](int rank, Communicator& communicator) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    const GpuArray<float> values(Filled<float>(rank, 9));
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(communicator.AllReduce(values.data(), values.data(), 9, DType::kFloat, ReduceOp::kSum, stream).ok());
    }
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    std::vector<float> expected = SummedOverRanks<float>(2, 9);
    for (float& value : expected) value *= 4;  // each further sum doubles
    EXPECT_EQ(values.Read(), expected);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  });
}

TEST_F(NcclCommunicator, RunsAgainFromAGraphAndCountsEachReplay) {
  StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(OptionsFor(2));
  ASSERT_TRUE(group.ok()) << group.status().message();
  OnRanks(**group, [](int, Communicator& communicator) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    const GpuArray<float> values(std::vector<float>{1, 2, 3});
    float* data = values.data();
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    ASSERT_TRUE(communicator.AllReduce(data, data, 3, DType::kFloat, ReduceOp::kSum, stream).ok());
    ASSERT_TRUE(communicator.Broadcast(data, data, 2, DType::kFloat, 0, stream).ok());
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(values.Read(), (std::vector<float>{1, 2, 3}));
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    for (int replay = 0; replay < 3; ++replay) ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(values.Read(), (std::vector<float>{8, 16, 24}));
    ASSERT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ((*group)->History(rank),
              "1 AllReduce of 3 float completed\n2 Broadcast of 2 float from rank 0 completed\n"
              "3 AllReduce of 3 float completed\n4 Broadcast of 2 float from rank 0 completed\n"
              "5 AllReduce of 3 float completed\n6 Broadcast of 2 float from rank 0 completed\n");
  }
}

TEST_F(NcclCommunicator, NamesARankThatStaysAwayAndKeepsTheReason) {
  OnRanks(3, milliseconds(300), [](int rank, Communicator& communicator) {
    const GpuArray<float> values(4);
    float* data = values.data();
    ASSERT_TRUE(communicator.AllReduce(data, data, 4, DType::kFloat, ReduceOp::kSum, nullptr).ok());
    if (rank == 1) return;
    const Status status = communicator.AllGather(data + rank, data, 1, DType::kFloat, nullptr);
    EXPECT_EQ(status.code(), StatusCode::kCommunication);
    EXPECT_THAT(status.message(), HasSubstr("collective 2 (AllGather of 1 float)"));
    EXPECT_THAT(status.message(), HasSubstr("rank 1 did not come (last completed by rank 0: 1, rank 1: 1, rank 2: 1)"));
    const Status later = communicator.AllReduce(data, data, 4, DType::kFloat, ReduceOp::kSum, nullptr);
    EXPECT_EQ(later.message(), status.message());
  });
}

TEST_F(NcclCommunicator, ARankWhoseGpuHangsFailsAllRanks) {
  simulated_nccl_drop_rank(1);
  OnRanks(2, milliseconds(50), [](int, Communicator& communicator) {
    const GpuArray<float> values(4);
    const Status status =
        communicator.AllReduce(values.data(), values.data(), 4, DType::kFloat, ReduceOp::kSum, nullptr);
    EXPECT_EQ(status.code(), StatusCode::kCommunication);
    EXPECT_THAT(status.message(), HasSubstr("collective 1 (AllReduce of 4 float)"));
    EXPECT_THAT(status.message(), HasSubstr("all ranks have come"));
  });
}

// On a stream of the caller nobody waits in the call: the stream passes what was aborted, and the group tells.
TEST_F(NcclCommunicator, AFailureIsToldBeforeStreamsAreReleased) {
  NcclGroupOptions options = OptionsFor(2, milliseconds(50));
  std::atomic<bool> told = false;
  options.on_failure = [&](const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kCommunication);
    told = true;
  };
  StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(options);
  ASSERT_TRUE(group.ok()) << group.status().message();
  EXPECT_TRUE((*group)->status().ok());
  OnRanks(**group, [&](int rank, Communicator& communicator) {
    if (rank == 1) return;
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    const GpuArray<float> values(4);
    EXPECT_TRUE(communicator.AllReduce(values.data(), values.data(), 4, DType::kFloat, ReduceOp::kSum, stream).ok());
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_TRUE(told);
    EXPECT_FALSE((*group)->status().ok());
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  });
}

TEST_F(NcclCommunicator, AnAbortThatDoesNotEndIsTold) {
  simulated_nccl_delay_abort(1000);
  NcclGroupOptions options = OptionsFor(2, milliseconds(100));  // the watchdog looks every 10 ms
  options.abort_timeout = milliseconds(50);
  std::promise<Status> stuck;
  options.on_stuck = [&](const Status& status) { stuck.set_value(status); };
  StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(options);
  ASSERT_TRUE(group.ok()) << group.status().message();
  (*group)->communicator(1).Abort(CommunicationError("reason"));
  EXPECT_EQ(stuck.get_future().get().message(), "reason");
  group->reset();                                   // does not wait for it for ever
  std::this_thread::sleep_for(milliseconds(1200));  // until it has ended after all
}

// The rank's replay of a graph is the one that stands still: the watchdog sees what the stream does, not the calls.
TEST_F(NcclCommunicator, NoticesAReplayThatStandsStill) {
  StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(OptionsFor(2, milliseconds(300)));
  ASSERT_TRUE(group.ok()) << group.status().message();
  OnRanks(**group, [&](int rank, Communicator& communicator) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    const GpuArray<float> values(4);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    ASSERT_TRUE(communicator.AllReduce(values.data(), values.data(), 4, DType::kFloat, ReduceOp::kSum, stream).ok());
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    for (int replay = 0; replay < (rank == 0 ? 3 : 2); ++replay) {
      ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    }
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    if (rank == 0) {
      EXPECT_THAT(
          (*group)->status().message(),
          HasSubstr("collective 3 (AllReduce of 4 float) stood still for 300 ms: rank 0 waits in it, rank 1 did "
                    "not come (last completed by rank 0: 2, rank 1: 2)"));
    }
    ASSERT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  });
}

TEST_F(NcclCommunicator, WaitsForARankThatIsLate) {
  simulated_nccl_delay(0, 60);
  OnRanks(2, kLong, [](int rank, Communicator& communicator) {
    const GpuArray<float> values(Filled<float>(rank, 4));
    ASSERT_TRUE(communicator.AllReduce(values.data(), values.data(), 4, DType::kFloat, ReduceOp::kSum, nullptr).ok());
    EXPECT_EQ(values.Read(), SummedOverRanks<float>(2, 4));
  });
}

TEST_F(NcclCommunicator, AbortWakesPendingCallsWithTheFirstReason) {
  OnRanks(2, kLong, [](int rank, Communicator& communicator) {
    const GpuArray<float> values(1);
    if (rank == 0) {
      std::this_thread::sleep_for(milliseconds(20));
      communicator.Abort(CommunicationError("first reason"));
      communicator.Abort(CommunicationError("second reason"));
    }
    const Status status =
        communicator.AllReduce(values.data(), values.data(), 1, DType::kFloat, ReduceOp::kSum, nullptr);
    EXPECT_EQ(status.message(), "first reason");
  });
}

TEST_F(NcclCommunicator, DifferentCollectivesAreRefusedNamingBoth) {
  OnRanks(2, kLong, [](int rank, Communicator& communicator) {
    const GpuArray<float> values(16);
    float* data = values.data();
    const Status status = rank == 0 ? communicator.AllReduce(data, data, 8, DType::kFloat, ReduceOp::kSum, nullptr)
                                    : communicator.AllGather(data + 8, data, 8, DType::kFloat, nullptr);
    EXPECT_EQ(status.code(), StatusCode::kCommunication);
    EXPECT_THAT(status.message(), HasSubstr("rank 0 AllReduce of 8 float"));
    EXPECT_THAT(status.message(), HasSubstr("rank 1 AllGather of 8 float"));
  });
}

TEST_F(NcclCommunicator, AShiftedInPlaceOffsetIsRefusedOnAllRanks) {
  OnRanks(2, kLong, [](int rank, Communicator& communicator) {
    const GpuArray<float> bucket(64);
    float* shard = bucket.data() + 32 * rank + (rank == 1 ? 4 : 0);
    const Status status = communicator.ReduceScatter(bucket.data(), shard, 32, DType::kFloat, ReduceOp::kSum, nullptr);
    EXPECT_THAT(status.message(), HasSubstr("ncclReduceScatter of rank 1: the buffers overlap but are not in place: "
                                            "recvbuff lies 144 bytes behind sendbuff, in place is 128"));
  });
}

TEST_F(NcclCommunicator, AMissingGroupEndIsNamed) {
  std::thread([] {  // the group stays open on this thread
    simulated_nccl_swallow_group_end(1);
    const auto group = NcclGroup::Create(OptionsFor(2));
    ASSERT_FALSE(group.ok());
    EXPECT_THAT(group.status().message(), HasSubstr("ncclGroupEnd is missing"));
  })
      .join();
}

TEST_F(NcclCommunicator, RefusesOptionsThatCannotBeHonoured) {
  NcclGroupOptions options = OptionsFor(2);
  options.devices = {1, 1};
  EXPECT_THAT(NcclGroup::Create(options).status().message(), HasSubstr("ranks 0 and 1 share GPU 1"));
  options = OptionsFor(2);
  options.world_size = 4;
  EXPECT_THAT(NcclGroup::Create(options).status().message(), HasSubstr("needs NCCL's id of 128 bytes"));
  options.first_rank = 3;
  EXPECT_THAT(NcclGroup::Create(options).status().message(), HasSubstr("ranks 3 to 4 do not fit a world of 4"));
  options.devices.clear();
  EXPECT_EQ(NcclGroup::Create(options).status().code(), StatusCode::kUsage);
  EXPECT_EQ(NcclGroup::LibraryVersion(), "2.28.9");
}

// Two groups as two processes would make them, joined by the id that rank 0 hands out.
TEST_F(NcclCommunicator, RanksOfSeveralProcessesJoinByRendezvous) {
  auto process = [&](int first_rank) {
    RendezvousOptions place;
    place.rank = place.local_rank = first_rank;
    place.world_size = 2;
    place.master_address = "127.0.0.1";
    place.port = 29411;
    place.identity.library_version = NcclGroup::LibraryVersion();
    const StatusOr<Rendezvous> met = Meet(place, NcclGroup::NewId);
    ASSERT_TRUE(met.ok()) << met.status().message();
    NcclGroupOptions options = OptionsFor(1);
    options.devices = {first_rank};
    options.first_rank = first_rank;
    options.world_size = 2;
    options.id = met->payload;
    StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(options);
    ASSERT_TRUE(group.ok()) << group.status().message();
    CHECK(cudaSetDevice(first_rank) == cudaSuccess);
    const GpuArray<float> values(Filled<float>(first_rank, 4));
    Communicator& communicator = (*group)->communicator(0);
    EXPECT_EQ(communicator.rank(), first_rank);
    ASSERT_TRUE(communicator.AllReduce(values.data(), values.data(), 4, DType::kFloat, ReduceOp::kSum, nullptr).ok());
    EXPECT_EQ(values.Read(), SummedOverRanks<float>(2, 4));
  };
  std::thread other(process, 1);
  process(0);
  other.join();
}

TEST_F(NcclCommunicator, AProcessThatDoesNotJoinFailsTheOthers) {
  NcclGroupOptions options = OptionsFor(1);
  options.world_size = 2;
  options.id = *NcclGroup::NewId();
  options.create_timeout = milliseconds(30);
  const auto group = NcclGroup::Create(options);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kCommunication);
  EXPECT_THAT(group.status().message(), HasSubstr("another rank did not come"));
}

// Whichever call of NCCL fails, everybody gets an error or a right result, and nothing hangs or stays behind.
TEST_F(NcclCommunicator, SurvivesTheFailureOfAnyCall) {
  for (int n = 0; n < 60; ++n) {
    simulated_nccl_fail_at(n);
    StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(OptionsFor(2));
    if (!group.ok()) {
      EXPECT_THAT(group.status().message(), HasSubstr("planted failure"));
      continue;
    }
    std::vector<Status> statuses(2);
    OnRanks(**group, [&](int rank, Communicator& communicator) {
      const GpuArray<float> values(Filled<float>(rank, 4));
      Status& status = statuses[static_cast<size_t>(rank)];
      for (int i = 0; i < 4 && status.ok(); ++i) {
        status = communicator.AllReduce(values.data(), values.data(), 4, DType::kFloat, ReduceOp::kMax, nullptr);
      }
      if (status.ok()) {
        EXPECT_EQ(values.Read(), Filled<float>(1, 4));
      }
    });
    for (const Status& status : statuses) {
      if (!status.ok()) {
        EXPECT_THAT(status.message(), HasSubstr("planted failure"));
      }
    }
  }
}

// The same for the CUDA runtime's calls, ours and the simulated NCCL's.
TEST_F(NcclCommunicator, SurvivesTheFailureOfAnyCudaCall) {
  std::vector<std::unique_ptr<GpuArray<float>>> values;
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
    values.push_back(std::make_unique<GpuArray<float>>(Filled<float>(rank, 4)));
  }
  int failures = 0;
  for (int n = 0; n < 120; ++n) {
    simulated_cuda_fail_at(n);
    {
      StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(OptionsFor(2));
      failures += !group.ok();
      if (!group.ok()) continue;
      std::vector<Status> statuses(2);
      std::vector<std::thread> threads;
      for (int rank = 0; rank < 2; ++rank) {
        threads.emplace_back([&, rank] {
          Status& status = statuses[static_cast<size_t>(rank)];
          float* data = values[static_cast<size_t>(rank)]->data();
          for (int i = 0; i < 3 && status.ok(); ++i) {
            status = (*group)->communicator(rank).AllReduce(data, data, 4, DType::kFloat, ReduceOp::kMax, nullptr);
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      failures += !(*group)->status().ok();
      for (const Status& status : statuses) {
        if (!status.ok()) {
          EXPECT_THAT(status.message(), testing::AnyOf(HasSubstr("cuda"), HasSubstr("collective")));
        }
      }
    }
    simulated_cuda_fail_at(-1);
  }
  simulated_cuda_fail_at(-1);
  EXPECT_GT(failures, 20);
}

}  // namespace
}  // namespace onnxtrain
