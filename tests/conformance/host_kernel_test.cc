// SPDX-License-Identifier: Apache-2.0
// What a device has no kernel for, run by the CPU's in the order of the device's stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/op_registry.h"
#include "tests/support/backends.h"
#include "tests/support/device_runner.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

using testing::Contains;
using testing::HasSubstr;

class HostKernel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string reason = WhyNot(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
    BackendOptions options;
    options.fallback = CpuKernels();
    StatusOr<std::unique_ptr<Backend>> backend = OpenBackend(GetParam(), options);
    ASSERT_OK(backend.status());
    backend_ = *std::move(backend);
  }

  void ExpectAsOnTheCpu(std::string_view op, const std::vector<OpInput>& inputs, Attributes attributes = {},
                        size_t outputs = 1) {
    SCOPED_TRACE(op);
    Graph graph(OpRegistry::Default());
    ASSERT_OK(AddOp(graph, op, inputs, std::move(attributes), outputs));
    const StatusOr<OpRunnerResult> found = RunGraphOn(backend_->device(0), graph, FeedsOf(inputs));
    const StatusOr<OpRunnerResult> expected = RunGraph(graph, FeedsOf(inputs));
    ASSERT_OK(found.status());
    ASSERT_OK(expected.status());
    for (const auto& [name, tensor] : expected->fetches) ExpectIdentical(found->fetches.at(name), tensor);
    EXPECT_EQ(found->status_word, expected->status_word);
  }

  std::unique_ptr<Backend> backend_;
};

TEST_P(HostKernel, RunsOperatorsAndTypesThatTheDeviceLacks) {
  ASSERT_FALSE(OpenTestBackend(GetParam(), 1)->device(0).kernels().Has("Mod")) << "take another operator here";
  ExpectAsOnTheCpu("Mod", {Fed(Tensor::Ints({7, -7, 9})), Fed(Tensor::Ints({4, 4, -5}))});
  ExpectAsOnTheCpu("Tanh", {Fed(RandomTensor(DType::kDouble, {5, 7}, 1))});
  ExpectAsOnTheCpu("TopK", {Fed(RandomTensor(DType::kDouble, {3, 8}, 2)), Constant(Tensor::Ints({2}))}, {}, 2);
  EXPECT_THAT(backend_->notes(), Contains(HasSubstr("Mod node of 'y0' from test runs on the host")));
}

TEST_P(HostKernel, LeavesToTheDeviceWhatItHas) {
  ExpectAsOnTheCpu("Relu", {Fed(RandomTensor(DType::kFloat, {5, 7}, 1))});
  EXPECT_TRUE(backend_->notes().empty());
}

TEST_P(HostKernel, ReportsFaultsInTheStatusWordOfTheDevice) {
  ExpectAsOnTheCpu("Gather", {Fed(RandomTensor(DType::kDouble, {3, 2}, 1)), Fed(Tensor::Ints({1, 2}))});
  ExpectAsOnTheCpu("onnxtrain.GatherGrad",
                   {Fed(Tensor::Ints({1, 3})), Fed(RandomTensor(DType::kDouble, {2, 2}, 1))},
                   {{"axis", int64_t{0}}, {"shape", std::vector<int64_t>{3, 2}}});
}

INSTANTIATE_TEST_SUITE_P(Backends, HostKernel, testing::Values("cuda"), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace onnxtrain
