// SPDX-License-Identifier: Apache-2.0
// A build without NCCL: one rank works, more are refused.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda_ops/nccl_communicator.h"
#include "tests/cuda/gpu_array.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

using testing::HasSubstr;

TEST(WithoutNccl, OneRankCopies) {
  NcclGroupOptions options;
  options.devices = {1};
  StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(options);
  ASSERT_OK(group.status());
  Communicator& communicator = (*group)->communicator(0);
  EXPECT_EQ(communicator.size(), 1);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const std::vector<float> values = {1, 2, 3};
  const GpuArray<float> send(values);
  auto copied = [&](auto collective) {
    const GpuArray<float> recv(values.size());
    EXPECT_OK(collective(send.data(), recv.data()));
    EXPECT_TRUE(collective(recv.data(), recv.data()).ok()) << "in place";
    return recv.Read();
  };
  constexpr DType kType = DType::kFloat;
  EXPECT_EQ(copied([&](float* from, float* to) {
              return communicator.AllReduce(from, to, 3, kType, ReduceOp::kMax, nullptr);
            }),
            values);
  EXPECT_EQ(copied([&](float* from, float* to) {
              return communicator.ReduceScatter(from, to, 3, kType, ReduceOp::kSum, nullptr);
            }),
            values);
  EXPECT_EQ(copied([&](float* from, float* to) { return communicator.AllGather(from, to, 3, kType, nullptr); }),
            values);
  EXPECT_EQ(copied([&](float* from, float* to) { return communicator.Broadcast(from, to, 3, kType, 0, nullptr); }),
            values);
  EXPECT_OK(communicator.AllReduce(nullptr, nullptr, 0, kType, ReduceOp::kSum, nullptr));
}

TEST(WithoutNccl, AbortKeepsTheFirstReason) {
  NcclGroupOptions options;
  options.devices = {0};
  StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(options);
  ASSERT_OK(group.status());
  (*group)->communicator(0).Abort(CommunicationError("first"));
  (*group)->communicator(0).Abort(CommunicationError("second"));
  EXPECT_EQ((*group)->status().message(), "first");
  EXPECT_EQ((*group)->communicator(0).Broadcast(nullptr, nullptr, 0, DType::kFloat, 0, nullptr).message(), "first");
}

TEST(WithoutNccl, MoreRanksAreRefused) {
  NcclGroupOptions options;
  options.devices = {0, 1};
  EXPECT_THAT(NcclGroup::Create(options).status().message(), HasSubstr("2 ranks on GPUs need NCCL"));
  options.devices = {0};
  options.world_size = 4;
  EXPECT_THAT(NcclGroup::Create(options).status().message(), HasSubstr("4 ranks on GPUs need NCCL"));
  EXPECT_EQ(NcclGroup::NewId().status().code(), StatusCode::kUsage);
  EXPECT_EQ(NcclGroup::LibraryVersion(), "none");
}

}  // namespace
}  // namespace onnxtrain
