// SPDX-License-Identifier: Apache-2.0
// What the communicators of GPUs do when a rank, a GPU, a call or our own code fails.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "tests/cuda/gpu_array.h"
#include "tests/cuda/nccl_ranks.h"
#include "tests/support/status_matchers.h"

extern "C" void simulated_cuda_fail_at(int64_t n);  // as simulated_nccl_fail_at, of the CUDA runtime

namespace onnxtrain {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST_F(NcclCommunicator, NamesARankThatStaysAwayAndKeepsTheReason) {
  OnRanks(3, milliseconds(300), [](int rank, Communicator& communicator) {
    const GpuArray<float> values(4);
    float* data = values.data();
    ASSERT_OK(communicator.AllReduce(data, data, 4, DType::kFloat, ReduceOp::kSum, nullptr));
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
  ASSERT_OK(group.status());
  EXPECT_OK((*group)->status());
  OnRanks(**group, [&](int rank, Communicator& communicator) {
    if (rank == 1) return;
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    const GpuArray<float> values(4);
    EXPECT_OK(communicator.AllReduce(values.data(), values.data(), 4, DType::kFloat, ReduceOp::kSum, stream));
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_TRUE(told);
    EXPECT_FALSE((*group)->status().ok());
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  });
}

// What an abort that does not end leaves to the process is no leak to report.
StatusOr<std::unique_ptr<NcclGroup>> CreateForTheProcess(const NcclGroupOptions& options) {
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler disabler;
#endif
  return NcclGroup::Create(options);
}

TEST_F(NcclCommunicator, AnAbortThatDoesNotEndIsTold) {
  simulated_nccl_delay_abort(1000);
  NcclGroupOptions options = OptionsFor(2, milliseconds(100));  // the watchdog looks every 10 ms
  options.abort_timeout = milliseconds(50);
  std::promise<Status> stuck;
  options.on_stuck = [&](const Status& status) { stuck.set_value(status); };
  StatusOr<std::unique_ptr<NcclGroup>> group = CreateForTheProcess(options);
  ASSERT_OK(group.status());
  (*group)->communicator(1).Abort(CommunicationError("reason"));
  EXPECT_EQ(stuck.get_future().get().message(), "reason");
  group->reset();                                   // does not wait for it for ever
  std::this_thread::sleep_for(milliseconds(1200));  // until it has ended after all
}

// The rank's replay of a graph is the one that stands still: the watchdog sees what the stream does, not the calls.
TEST_F(NcclCommunicator, NoticesAReplayThatStandsStill) {
  StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(OptionsFor(2, milliseconds(300)));
  ASSERT_OK(group.status());
  OnRanks(**group, [&](int rank, Communicator& communicator) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    const GpuArray<float> values(4);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    ASSERT_OK(communicator.AllReduce(values.data(), values.data(), 4, DType::kFloat, ReduceOp::kSum, stream));
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
