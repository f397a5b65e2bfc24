// SPDX-License-Identifier: Apache-2.0
// The communicators of GPUs on the simulated NCCL and CUDA runtime, 1 to 4 ranks.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "cuda_ops/rendezvous.h"
#include "tests/cuda/gpu_array.h"
#include "tests/cuda/nccl_ranks.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

using testing::HasSubstr;

const int64_t kCounts[] = {0, 1, 3, 1023};

TEST_F(NcclCommunicator, AllReduceSumsInPlaceAndNot) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    OnRanks(ranks, kLong, [&](int rank, Communicator& communicator) {
      EXPECT_EQ(communicator.rank(), rank);
      EXPECT_EQ(communicator.size(), ranks);
      for (int64_t count : kCounts) {
        const GpuArray<float> values(Filled<float>(rank, count));
        const GpuArray<float> result(static_cast<size_t>(count));
        ASSERT_OK(communicator.AllReduce(values.data(), result.data(), count, DType::kFloat, ReduceOp::kSum, nullptr));
        ASSERT_OK(communicator.AllReduce(values.data(), values.data(), count, DType::kFloat, ReduceOp::kSum, nullptr));
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
      ASSERT_OK(communicator.AllReduce(values.data(), values.data(), 7, dtype, ReduceOp::kMax, nullptr));
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
    ASSERT_OK(communicator.AllReduce(data, data, 1, DType::kFloat16, ReduceOp::kSum, nullptr));
    ASSERT_OK(communicator.AllReduce(data + 1, data + 1, 1, DType::kBfloat16, ReduceOp::kSum, nullptr));
    EXPECT_EQ(values.Read(), (std::vector<uint16_t>{FloatToFloat16(3.75f), FloatToBfloat16(3.75f)}));
  });
}

TEST_F(NcclCommunicator, MovesTypesThatNcclLacksAndRefusesToReduceThem) {
  OnRanks(2, kLong, [](int rank, Communicator& communicator) {
    const GpuArray<int16_t> mine(Filled<int16_t>(rank, 3));
    const GpuArray<int16_t> all(6);
    ASSERT_OK(communicator.AllGather(mine.data(), all.data(), 3, DType::kInt16, nullptr));
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
        ASSERT_OK(communicator.ReduceScatter(bucket.data(), shard, count, DType::kFloat, ReduceOp::kSum, nullptr));
        ASSERT_OK(communicator.AllGather(shard, bucket.data(), count, DType::kFloat, nullptr));
        EXPECT_EQ(bucket.Read(), SummedOverRanks<float>(ranks, count * ranks));
      }
    });
  }
}

TEST_F(NcclCommunicator, BroadcastCopiesTheRoot) {
  OnRanks(3, kLong, [](int rank, Communicator& communicator) {
    const GpuArray<double> values(Filled<double>(rank, 5));
    ASSERT_OK(communicator.Broadcast(values.data(), values.data(), 5, DType::kDouble, 2, nullptr));
    EXPECT_EQ(values.Read(), Filled<double>(2, 5));
  });
}

TEST_F(NcclCommunicator, EnqueuesOnTheCallersStream) {
  OnRanks(2, kLong, [](int rank, Communicator& communicator) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    const GpuArray<float> values(Filled<float>(rank, 9));
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(communicator.AllReduce(values.data(), values.data(), 9, DType::kFloat, ReduceOp::kSum, stream));
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
  ASSERT_OK(group.status());
  OnRanks(**group, [](int, Communicator& communicator) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    const GpuArray<float> values(std::vector<float>{1, 2, 3});
    float* data = values.data();
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    ASSERT_OK(communicator.AllReduce(data, data, 3, DType::kFloat, ReduceOp::kSum, stream));
    ASSERT_OK(communicator.Broadcast(data, data, 2, DType::kFloat, 0, stream));
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

TEST_F(NcclCommunicator, WaitsForARankThatIsLate) {
  simulated_nccl_delay(0, 60);
  OnRanks(2, kLong, [](int rank, Communicator& communicator) {
    const GpuArray<float> values(Filled<float>(rank, 4));
    ASSERT_OK(communicator.AllReduce(values.data(), values.data(), 4, DType::kFloat, ReduceOp::kSum, nullptr));
    EXPECT_EQ(values.Read(), SummedOverRanks<float>(2, 4));
  });
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
    ASSERT_OK(met.status());
    NcclGroupOptions options = OptionsFor(1);
    options.devices = {first_rank};
    options.first_rank = first_rank;
    options.world_size = 2;
    options.id = met->payload;
    StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(options);
    ASSERT_OK(group.status());
    CHECK(cudaSetDevice(first_rank) == cudaSuccess);
    const GpuArray<float> values(Filled<float>(first_rank, 4));
    Communicator& communicator = (*group)->communicator(0);
    EXPECT_EQ(communicator.rank(), first_rank);
    ASSERT_OK(communicator.AllReduce(values.data(), values.data(), 4, DType::kFloat, ReduceOp::kSum, nullptr));
    EXPECT_EQ(values.Read(), SummedOverRanks<float>(2, 4));
  };
  std::thread other(process, 1);
  process(0);
  other.join();
}

}  // namespace
}  // namespace onnxtrain
