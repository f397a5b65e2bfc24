// SPDX-License-Identifier: Apache-2.0
// Our CUDA kernels, compiled for the host: results against formulas in double, and the same bits whatever the order in
// which blocks and threads run. That they are free of races inside a block and write nothing beyond their memory is
// shown by the same cases under sanitizers (device_code_sanitized.cc).
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "cuda_ops/kernels/divisor.h"
#include "tests/cuda/device_case.h"
#include "tests/simulated_cuda/host_cuda.h"

namespace onnxtrain {
namespace {

class DeviceCode : public testing::Test {
 protected:
  void TearDown() override { host_cuda::SetThreadOrder(host_cuda::ThreadOrder::kForward); }
};

TEST_F(DeviceCode, AgreesWithTheFormulas) {
  for (const DeviceCase& c : AllDeviceCases()) EXPECT_EQ(Disagreement(c.run()), "") << c.name;
}

TEST_F(DeviceCode, GivesTheSameBitsInEveryOrderOfBlocksAndThreads) {
  using host_cuda::ThreadOrder;
  for (const DeviceCase& c : AllDeviceCases()) {
    host_cuda::SetThreadOrder(ThreadOrder::kForward);
    const CaseResult forward = c.run();
    for (const auto& [order, seed] : {std::pair(ThreadOrder::kReversed, 0), std::pair(ThreadOrder::kShuffled, 20260),
                                      std::pair(ThreadOrder::kShuffled, 47)}) {
      host_cuda::SetThreadOrder(order, static_cast<uint32_t>(seed));
      const CaseResult other = c.run();
      for (size_t i = 0; i < forward.outputs.size(); ++i) {
        const Array& a = forward.outputs[i];
        EXPECT_TRUE(a.bytes() == 0 || std::memcmp(a.data(), other.outputs[i].data(), a.bytes()) == 0)
            << c.name << ", output " << i << ", order " << static_cast<int>(order) << ", seed " << seed;
      }
    }
  }
}

// A kernel that no case reaches would be untested: add a case.
TEST_F(DeviceCode, EveryKernelIsReachedByACase) {
  for (const DeviceCase& c : AllDeviceCases()) c.run();
  for (void* const kernel : host_cuda::KernelsNeverLaunched()) {
    Dl_info info = {};
    dladdr(kernel, &info);
    ADD_FAILURE() << (info.dli_sname == nullptr ? "a kernel" : info.dli_sname) << " is launched by no case";
  }
}

TEST(Divisor, DividesExactly) {
  std::mt19937_64 random(20260);
  const auto number = [&] { return static_cast<int64_t>(random() >> (1 + random() % 63)); };
  for (int i = 0; i < 200000; ++i) {
    const int64_t d = std::clamp<int64_t>(number(), 1, int64_t{1} << 62);
    const Divisor divisor(d);
    for (const int64_t n : {number(), number() / d * d, std::max<int64_t>(0, number() / d * d - 1), INT64_MAX, d - 1}) {
      ASSERT_EQ(divisor.Quotient(n), n / d) << n << " by " << d;
    }
  }
}

// The comparison itself can fail.
TEST_F(DeviceCode, DisagreementNamesTheElement) {
  CaseResult result;
  result.outputs.emplace_back(DType::kFloat, std::vector<double>{1, 2, 3});
  result.expected.push_back({1, 2.5, 3});
  EXPECT_EQ(Disagreement(result), "output 0 element 1 is 2.000000, expected 2.500000");
  result.expected[0][1] = 2;
  EXPECT_EQ(Disagreement(result), "");
}

}  // namespace
}  // namespace onnxtrain
