// SPDX-License-Identifier: Apache-2.0
// The simulated NCCL itself: each rule of NCCL that it knows is broken once, and must be named.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cuda/gpu_array.h"
#include "tests/simulated_cuda/nccl_control.h"

namespace onnxtrain {
namespace {

using testing::HasSubstr;

// Two ranks that one thread drives: nothing here waits for the other rank on the host.
class SimulatedNccl : public testing::Test {
 protected:
  void SetUp() override {
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int r = 0; r < 2; ++r) {
      ASSERT_EQ(cudaSetDevice(r), cudaSuccess);
      ASSERT_EQ(cudaStreamCreateWithFlags(&streams_[r], cudaStreamNonBlocking), cudaSuccess);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ASSERT_EQ(ncclCommInitRankConfig(&ranks_[r], 2, id, r, &config), ncclSuccess);
      buffers_.push_back(std::make_unique<GpuArray<float>>(std::vector<float>(64, 1.0f)));
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    for (int r = 0; r < 2; ++r) EXPECT_EQ(AsyncError(r), ncclSuccess);
  }

  void TearDown() override {
    std::vector<std::thread> threads;
    for (const ncclComm_t rank : ranks_) threads.emplace_back([rank] { (void)ncclCommAbort(rank); });
    for (std::thread& thread : threads) thread.join();
    for (int r = 0; r < 2; ++r) {
      ASSERT_EQ(cudaSetDevice(r), cudaSuccess);
      EXPECT_EQ(cudaStreamDestroy(streams_[r]), cudaSuccess);
    }
  }

  ncclResult_t AsyncError(int rank) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      if (const ncclResult_t result = ncclCommGetAsyncError(ranks_[rank], &state); result != ncclSuccess) return result;
    }
    return state;
  }
  float* Buffer(int rank) { return buffers_[static_cast<size_t>(rank)]->data(); }

  // With the rank's GPU current; waits until NCCL has taken the call.
  ncclResult_t AllReduce(int rank, size_t count) {
    EXPECT_EQ(cudaSetDevice(rank), cudaSuccess);
    return Taken(rank,
                 ncclAllReduce(Buffer(rank), Buffer(rank), count, ncclFloat32, ncclSum, ranks_[rank], streams_[rank]));
  }
  ncclResult_t AllGather(int rank, size_t count, size_t offset) {
    EXPECT_EQ(cudaSetDevice(rank), cudaSuccess);
    return Taken(rank,
                 ncclAllGather(Buffer(rank) + offset, Buffer(rank), count, ncclFloat32, ranks_[rank], streams_[rank]));
  }
  ncclResult_t Taken(int rank, ncclResult_t result) { return result == ncclInProgress ? AsyncError(rank) : result; }

  cudaStream_t streams_[2] = {};
  ncclComm_t ranks_[2] = {};
  std::vector<std::unique_ptr<GpuArray<float>>> buffers_;
};

TEST_F(SimulatedNccl, SwappedCollectivesAreNamedOnBothRanks) {
  EXPECT_EQ(AllReduce(0, 8), ncclSuccess);
  EXPECT_EQ(AllGather(0, 8, 0), ncclSuccess);
  EXPECT_EQ(AllGather(1, 8, 8), ncclInvalidUsage);
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(AsyncError(r), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(ranks_[r]),
                HasSubstr("number 1: rank 0 ncclAllReduce of 8 float32, op 0, in place, rank 1 ncclAllGather of 8"));
    ASSERT_EQ(cudaSetDevice(r), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(streams_[r]), cudaSuccess);  // released, not hanging
  }
}

TEST_F(SimulatedNccl, DifferentCountsAreNamed) {
  EXPECT_EQ(AllReduce(0, 8), ncclSuccess);
  EXPECT_EQ(AllReduce(1, 9), ncclInvalidUsage);
  EXPECT_EQ(AsyncError(0), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(ranks_[0]), HasSubstr("ncclAllReduce of 9 float32"));
}

TEST_F(SimulatedNccl, InPlaceOffsetsAreExact) {
  EXPECT_EQ(AllGather(1, 8, 0), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(ranks_[1]), HasSubstr("sendbuff lies 0 bytes behind recvbuff, in place is 32"));
  EXPECT_EQ(AllGather(0, 8, 15), ncclInvalidArgument);  // one element overlaps
  EXPECT_EQ(AllGather(0, 8, 0), ncclSuccess);
  EXPECT_EQ(AllGather(1, 8, 8), ncclSuccess);
}

TEST_F(SimulatedNccl, AMissingGroupEndIsNamed) {
  std::thread([this] {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(AllReduce(0, 8), ncclSuccess);
    EXPECT_EQ(AsyncError(0), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(ranks_[0]), HasSubstr("ncclGroupEnd is missing"));
  }).join();
  EXPECT_GT(simulated_nccl_counter("open_groups"), 0);
}

TEST_F(SimulatedNccl, AGroupEndTooManyIsRefused) { EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage); }

TEST_F(SimulatedNccl, AGroupEnqueuesAtItsEnd) {
  const int64_t before = simulated_nccl_counter("collectives");
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(ncclBroadcast(Buffer(0), Buffer(0), 4, ncclFloat32, 0, ranks_[0], streams_[0]), ncclSuccess);
  EXPECT_EQ(simulated_nccl_counter("collectives"), before);
  EXPECT_EQ(Taken(0, ncclGroupEnd()), ncclSuccess);
  EXPECT_EQ(simulated_nccl_counter("collectives"), before + 1);
}

TEST_F(SimulatedNccl, TheNextCallWaitsForOneInProgress) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  auto broadcast = [&] { return ncclBroadcast(Buffer(0), Buffer(0), 4, ncclFloat32, 0, ranks_[0], streams_[0]); };
  EXPECT_EQ(broadcast(), ncclInProgress);
  EXPECT_EQ(broadcast(), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(ranks_[0]), HasSubstr("still in progress"));
}

TEST_F(SimulatedNccl, DestructionKeepsItsOrder) {
  EXPECT_EQ(ncclCommDestroy(ranks_[0]), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(ranks_[0]), HasSubstr("before ncclCommFinalize has ended"));
  EXPECT_EQ(ncclCommFinalize(ranks_[0]), ncclInProgress);
  EXPECT_EQ(ncclCommDestroy(ranks_[0]), ncclInvalidUsage);  // the other rank has not left
  EXPECT_EQ(ncclCommFinalize(ranks_[1]), ncclSuccess);
  EXPECT_EQ(AllReduce(0, 1), ncclInvalidUsage);
  EXPECT_EQ(AsyncError(0), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(ranks_[0]), ncclSuccess);
  EXPECT_EQ(AllReduce(0, 1), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(ranks_[0]), HasSubstr("used after ncclCommDestroy"));
}

TEST_F(SimulatedNccl, RanksThatCaptureDifferentThingsAreRefused) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(AllReduce(0, 8), ncclSuccess);
  EXPECT_EQ(AllReduce(1, 8), ncclInvalidUsage);  // eager
  EXPECT_THAT(ncclGetLastError(ranks_[1]), HasSubstr("in place, captured, rank 1 ncclAllReduce of 8"));
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(streams_[0], &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

// Both ranks capture two graphs in the same order; one replays the second instead of the first.
TEST_F(SimulatedNccl, GraphsLaunchedInAnotherOrderAreNamed) {
  cudaGraphExec_t graphs[2][2] = {};
  for (int r = 0; r < 2; ++r) {
    for (int g = 0; g < 2; ++g) {
      ASSERT_EQ(cudaSetDevice(r), cudaSuccess);
      ASSERT_EQ(cudaStreamBeginCapture(streams_[r], cudaStreamCaptureModeThreadLocal), cudaSuccess);
      EXPECT_EQ(AllReduce(r, g == 0 ? 8 : 16), ncclSuccess);
      cudaGraph_t graph = nullptr;
      ASSERT_EQ(cudaStreamEndCapture(streams_[r], &graph), cudaSuccess);
      ASSERT_EQ(cudaGraphInstantiate(&graphs[r][g], graph, 0), cudaSuccess);
      ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
  }
  for (int r = 0; r < 2; ++r) {
    ASSERT_EQ(cudaSetDevice(r), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(graphs[r][r], streams_[r]), cudaSuccess);
  }
  for (int r = 0; r < 2; ++r) {
    ASSERT_EQ(cudaSetDevice(r), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(streams_[r]), cudaSuccess);
    EXPECT_EQ(AsyncError(r), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(ranks_[r]), HasSubstr("execute different collectives as number 1"));
    for (int g = 0; g < 2; ++g) EXPECT_EQ(cudaGraphExecDestroy(graphs[r][g]), cudaSuccess);
  }
}

// Both ask again and again until they meet inside.
TEST_F(SimulatedNccl, TwoThreadsInOneCommunicatorAreNoticed) {
  std::atomic<bool> noticed = false;
  auto hammer = [&] {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!noticed && std::chrono::steady_clock::now() < deadline) {
      ncclResult_t state = ncclSuccess;
      if (ncclCommGetAsyncError(ranks_[0], &state) == ncclInvalidUsage) noticed = true;
    }
  };
  std::thread other(hammer);
  hammer();
  other.join();
  EXPECT_TRUE(noticed);
}

}  // namespace
}  // namespace onnxtrain
