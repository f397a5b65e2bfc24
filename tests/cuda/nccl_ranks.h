// SPDX-License-Identifier: Apache-2.0
// Ranks as threads on simulated GPUs.
#ifndef ONNXTRAIN_TESTS_CUDA_NCCL_RANKS_H_
#define ONNXTRAIN_TESTS_CUDA_NCCL_RANKS_H_

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "cuda_ops/nccl_communicator.h"
#include "tests/simulated_cuda/nccl_control.h"

namespace onnxtrain {

inline constexpr std::chrono::milliseconds kLong{60000};

inline std::vector<int> Devices(int ranks) {
  std::vector<int> devices;
  for (int r = 0; r < ranks; ++r) devices.push_back(r);
  return devices;
}

inline NcclGroupOptions OptionsFor(int ranks, std::chrono::milliseconds timeout = kLong) {
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
void OnRanks(int ranks, std::chrono::milliseconds timeout, Body body) {
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

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_CUDA_NCCL_RANKS_H_
