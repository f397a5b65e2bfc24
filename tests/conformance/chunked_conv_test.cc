// SPDX-License-Identifier: Apache-2.0
// Convolutions with more columns than are kept at a time: the samples after the first begin at odd places.
#include <gtest/gtest.h>

#include "graph/op_registry.h"
#include "tests/support/backends.h"
#include "tests/support/device_runner.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

class ChunkedConv : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string reason = WhyNot(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
    backend_ = OpenTestBackend(GetParam(), 1);
  }

  void ExpectAsOnTheCpu(const std::string& op, const std::vector<Tensor>& inputs, const Attributes& attributes,
                        size_t outputs, double tolerance) {
    SCOPED_TRACE(op);
    std::vector<OpInput> fed;
    for (const Tensor& input : inputs) fed.push_back(Fed(input));
    Graph graph(OpRegistry::Default());
    ASSERT_OK(AddOp(graph, op, fed, attributes, outputs));
    const StatusOr<OpRunnerResult> found = RunGraphOn(backend_->device(0), graph, FeedsOf(fed));
    ASSERT_OK(found);
    const StatusOr<OpRunnerResult> expected = RunGraph(graph, FeedsOf(fed));
    ASSERT_OK(expected);
    for (const auto& [name, tensor] : expected->fetches) ExpectNear(found->fetches.at(name), tensor, tolerance);
  }

  std::unique_ptr<Backend> backend_;
};

// 64 MB of columns and more a sample: each is a chunk, and the second begins 2699876 bytes behind the first.
TEST_P(ChunkedConv, SamplesBeginWhereTheOneBeforeEnds) {
  const std::vector<int64_t> x_shape = {2, 1, 1001, 681}, kernel = {5, 5};
  const Tensor x = RandomTensor(DType::kFloat, x_shape, 1), w = RandomTensor(DType::kFloat, {1, 1, 5, 5}, 2);
  const Tensor dy = RandomTensor(DType::kFloat, {2, 1, 997, 677}, 3, -1e-2, 1e-2);
  ExpectAsOnTheCpu("Conv", {x, w}, {}, 1, 1e-5);
  ExpectAsOnTheCpu("onnxtrain.ConvInputGrad", {dy, w}, {{"input_shape", x_shape}}, 1, 1e-5);
  ExpectAsOnTheCpu("onnxtrain.ConvWeightGrad", {dy, x}, {{"kernel_shape", kernel}}, 2, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Backends, ChunkedConv, testing::Values("cuda"), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace onnxtrain
