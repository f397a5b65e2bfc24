// SPDX-License-Identifier: Apache-2.0
// Every operator of a backend against the CPU's kernel in float, in the backend's own 16-bit types too, over odd sizes.
// The CPU reads the same inputs, rounded to the type; what is left is the rounding of the result and the order of sums.
// A kernel without a case fails the suite.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "graph/op_registry.h"
#include "tests/conformance/parity_cases.h"
#include "tests/support/backends.h"
#include "tests/support/device_runner.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

// These are the communicator suite's, and those that need a Layout the team's.
const std::set<std::string, std::less<>> kElsewhere = {
    "onnxtrain.AllReduce",  "onnxtrain.ReduceScatter", "onnxtrain.AllGather", "onnxtrain.Broadcast",
    "onnxtrain.BucketPack", "onnxtrain.BucketUnpack",  "onnxtrain.Shard"};

class OperatorParity : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string reason = WhyNot(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
    backend_ = OpenTestBackend(GetParam(), 1);
  }

  static std::vector<OpInput> InType(const std::vector<OpInput>& inputs, DType dtype) {
    std::vector<OpInput> converted = inputs;
    for (OpInput& input : converted) {
      if (input.tensor && input.tensor->dtype() == DType::kFloat) input.tensor = input.tensor->CastTo(dtype);
    }
    return converted;
  }

  static NamedTensors Wide(const NamedTensors& tensors) {
    NamedTensors wide;
    for (const auto& [name, tensor] : tensors) {
      const bool small = tensor.dtype() == DType::kBfloat16 || tensor.dtype() == DType::kFloat16;
      wide[name] = small ? tensor.CastTo(DType::kFloat) : tensor;
    }
    return wide;
  }

  void Run(const ParityCase& c, DType dtype, bool share_bytes) {
    SCOPED_TRACE(c.op + (share_bytes ? " in place" : "") + " in " + std::string(NameOf(dtype)));
    const std::vector<OpInput> inputs = InType(c.inputs, dtype);
    Graph graph(OpRegistry::Default());
    ASSERT_OK(AddOp(graph, c.op, inputs, c.attributes, c.outputs));
    const StatusOr<OpRunnerResult> found =
        RunGraphOn(backend_->device(0), graph, FeedsOf(inputs), {.share_bytes = share_bytes});
    ASSERT_TRUE(IsOk(found.status()));
    // The CPU's kernel, in float, on what the small type holds.
    std::vector<OpInput> rounded = inputs;
    for (size_t i = 0; i < rounded.size(); ++i) {
      if (rounded[i].tensor && c.inputs[i].tensor->dtype() == DType::kFloat) {
        rounded[i].tensor = rounded[i].tensor->CastTo(DType::kFloat);
      }
    }
    Graph reference(OpRegistry::Default());
    ASSERT_OK(AddOp(reference, c.op, rounded, c.attributes, c.outputs));
    const StatusOr<OpRunnerResult> expected = RunGraph(reference, FeedsOf(rounded));
    ASSERT_TRUE(IsOk(expected.status()));
    const double step = dtype == DType::kBfloat16 ? 1.0 / 128 : dtype == DType::kFloat16 ? 1.0 / 1024 : 0;
    const NamedTensors wide = Wide(found->fetches);
    for (const auto& [name, tensor] : Wide(expected->fetches)) {
      SCOPED_TRACE(name);
      if (IsFloating(tensor.dtype())) {
        ExpectNear(wide.at(name), tensor, c.tolerance + step);
      } else {
        ExpectIdentical(wide.at(name), tensor);
      }
    }
    EXPECT_EQ(found->status_word, expected->status_word);
  }

  std::unique_ptr<Backend> backend_;
};

TEST_P(OperatorParity, EveryKernelAgreesWithTheCpu) {
  for (const ParityCase& c : AllParityCases()) {
    if (!backend_->device(0).kernels().Has(c.op)) continue;
    for (const bool share_bytes : {false, true}) {
      Run(c, DType::kFloat, share_bytes);
      if (c.float_only) continue;
      Run(c, DType::kBfloat16, share_bytes);
      Run(c, DType::kFloat16, share_bytes);
    }
  }
}

TEST_P(OperatorParity, EveryKernelHasACase) {
  if (GetParam() == "cpu") GTEST_SKIP() << "the CPU's kernels have references of their own in tests/ops";
  std::set<std::string, std::less<>> covered = kElsewhere;
  for (const ParityCase& c : AllParityCases()) covered.insert(c.op);
  for (const std::string& op : backend_->device(0).kernels().Ops()) {
    EXPECT_TRUE(covered.contains(op)) << op << " has a kernel and no parity case";
  }
}

TEST_P(OperatorParity, BadIndicesAndLabelsSetTheStatusWord) {
  Device& device = backend_->device(0);
  const auto word = [&](std::string_view op, const std::vector<OpInput>& inputs) {
    Graph graph(OpRegistry::Default());
    EXPECT_OK(AddOp(graph, op, inputs));
    const StatusOr<OpRunnerResult> result = RunGraphOn(device, graph, FeedsOf(inputs));
    EXPECT_TRUE(IsOk(result.status()));
    return result.ok() ? result->status_word : 0;
  };
  EXPECT_EQ(word("Gather", {Fed(RandomTensor(DType::kFloat, {3, 2}, 1)), Fed(Tensor::Ints({1, 3}))}),
            uint64_t{1} << 32 | 1);
  EXPECT_EQ(word("GatherElements",
                 {Fed(RandomTensor(DType::kFloat, {3, 2}, 1)), Fed(Tensor::FromVector<int64_t>({2, 1}, {0, 3}))}),
            uint64_t{1} << 32 | 1);
  EXPECT_EQ(word("ScatterND", {Fed(RandomTensor(DType::kFloat, {3}, 1)), Fed(Tensor::FromVector<int64_t>({1, 1}, {-4})),
                               Fed(RandomTensor(DType::kFloat, {1}, 1))}),
            uint64_t{1} << 32 | 1);
  EXPECT_EQ(word("SoftmaxCrossEntropyLoss", {Fed(RandomTensor(DType::kFloat, {2, 3}, 2)), Fed(Tensor::Ints({2, -1}))}),
            uint64_t{3} << 32 | 1);
}

INSTANTIATE_TEST_SUITE_P(Backends, OperatorParity, testing::ValuesIn(AllBackends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace onnxtrain
