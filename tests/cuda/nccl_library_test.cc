// SPDX-License-Identifier: Apache-2.0
// The communicators on the real libraries: linked everywhere, so that the simulation has no function that NCCL lacks;
// without a GPU they fail as they should.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "cuda_ops/nccl_communicator.h"
#include "tests/cuda/gpu_array.h"

namespace onnxtrain {
namespace {

bool HasGpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

NcclGroupOptions OneRank() {
  NcclGroupOptions options;
  options.devices = {0};
  options.create_timeout = std::chrono::milliseconds(60000);
  return options;
}

TEST(NcclLibrary, MakesAnIdWithoutAGpu) {
  const StatusOr<std::string> id = NcclGroup::NewId();
  ASSERT_TRUE(id.ok()) << id.status().message();
  EXPECT_EQ(id->size(), 128u);
  EXPECT_EQ(NcclGroup::LibraryVersion().substr(0, 2), "2.");
}

TEST(NcclLibrary, SaysWhyThereIsNoGroupWithoutAGpu) {
  if (HasGpu()) GTEST_SKIP() << "this machine has a GPU";
  const auto group = NcclGroup::Create(OneRank());
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().message().rfind("cudaSetDevice: ", 0), 0u) << group.status().message();
}

TEST(NcclLibrary, ReducesOnAGpu) {
  if (!HasGpu()) GTEST_SKIP() << "needs a GPU";
  StatusOr<std::unique_ptr<NcclGroup>> group = NcclGroup::Create(OneRank());
  ASSERT_TRUE(group.ok()) << group.status().message();
  const GpuArray<float> values({1, 2, 3});
  const GpuArray<float> result(3);
  const Status status =
      (*group)->communicator(0).AllReduce(values.data(), result.data(), 3, DType::kFloat, ReduceOp::kSum, nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(result.Read(), (std::vector<float>{1, 2, 3}));
}

}  // namespace
}  // namespace onnxtrain
