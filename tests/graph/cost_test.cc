// SPDX-License-Identifier: Apache-2.0
#include "graph/cost.h"

#include <gtest/gtest.h>

#include "graph/bucket_cut.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

// One node of an operator with given types; nothing is inferred.
class CostTest : public ::testing::Test {
 protected:
  const Node& Make(const std::string& op, const std::vector<Shape>& inputs, const std::vector<Shape>& outputs,
                   Attributes attributes = {}) {
    if (registry_.Find(op) == nullptr) {
      OpDef def;
      def.name = op;
      def.collective = op == "onnxtrain.AllReduce" || op == "onnxtrain.ReduceScatter";
      if (op == "Reshape") {
        def.aliases = [](const Node&) { return std::vector<AliasRule>{{AliasRule::Kind::kView, 0, 0, 0}}; };
      }
      registry_.Add(def);
    }
    NodeSpec spec{op, {}, std::move(attributes), {}, "", {}};
    for (const Shape& shape : inputs) {
      spec.inputs.push_back(graph_.AddInput(graph_.UniqueName("x"), {DType::kFloat, shape}));
    }
    for (const Shape& shape : outputs) {
      spec.output_names.push_back("y");
      spec.output_types.push_back({DType::kFloat, shape});
    }
    return **graph_.Insert(nullptr, std::move(spec));
  }

  OpRegistry registry_;
  Graph graph_{registry_};
};

TEST_F(CostTest, MatrixProducts) {
  EXPECT_EQ(WorkOf(Make("MatMul", {{2, 8, 3}, {3, 5}}, {{2, 8, 5}})).flops, 2.0 * 2 * 8 * 5 * 3);
  EXPECT_EQ(WorkOf(Make("Gemm", {{3, 8}, {3, 5}, {5}}, {{8, 5}}, {{"transA", int64_t{1}}})).flops, 2.0 * 8 * 5 * 3);
  EXPECT_EQ(
      WorkOf(Make("onnxtrain.MatMul", {{3, 8}, {3, 5}}, {{8, 5}}, {{"perm_a", std::vector<int64_t>{1, 0}}})).flops,
      2.0 * 8 * 5 * 3);
  EXPECT_EQ(WorkOf(Make("MatMul", {{4}, {4}}, {{}})).flops, 8.0);
  EXPECT_EQ(WorkOf(Make("MatMul", {{2, 0}, {0, 2}}, {{2, 2}})).flops, 0.0);
}

TEST_F(CostTest, ConvolutionsAndTheirGradients) {
  const Shape x = {2, 6, 10, 10};
  const Shape w = {8, 3, 3, 3};
  const Shape y = {2, 8, 8, 8};
  const double flops = 2.0 * (2 * 8 * 8 * 8) * (3 * 3 * 3);
  EXPECT_EQ(WorkOf(Make("Conv", {x, w, {8}}, {y}, {{"group", int64_t{2}}})).flops, flops);
  EXPECT_EQ(WorkOf(Make("onnxtrain.ConvInputGrad", {y, w}, {x})).flops, flops);
  EXPECT_EQ(WorkOf(Make("onnxtrain.ConvWeightGrad", {y, x}, {w})).flops, flops);
  EXPECT_EQ(WorkOf(Make("ConvTranspose", {y, w}, {x})).flops, flops);
  EXPECT_EQ(WorkOf(Make("Conv", {{0, 6, 10, 10}, w}, {{0, 8, 8, 8}})).flops, 0.0);
}

TEST_F(CostTest, BytesAndViews) {
  const Node& add = Make("Add", {{100}, {100}}, {{100}});
  EXPECT_EQ(WorkOf(add).bytes, 1200.0);
  EXPECT_EQ(WorkOf(add).flops, 100.0);
  EXPECT_EQ(WorkOf(Make("Gather", {{1000000, 4}, {3}}, {{3, 4}})).bytes, 96.0);
  CostModel model;
  model.memory_gbps = 1;  // 1000 bytes a microsecond
  model.kernel_us = 2;
  EXPECT_DOUBLE_EQ(NodeMicroseconds(add, model), 3.2);
  EXPECT_EQ(NodeMicroseconds(Make("Reshape", {{100}}, {{10, 10}}), model), 0.0);
}

TEST_F(CostTest, ReleaseTimesFollowTheOrderOfTheGraph) {
  CostModel model;
  model.memory_gbps = 1;
  model.kernel_us = 0;
  model.world_size = 2;
  graph_.SetRole("gradient/b", Make("Neg", {{250}}, {{250}}).output(0));  // 2000 bytes
  Make("onnxtrain.AllReduce", {{250}}, {{250}});
  graph_.SetRole("gradient/a", Make("Neg", {{500}}, {{500}}).output(0));  // 4000 bytes more
  graph_.SetRole("gradient/fed", graph_.inputs()[0]);
  const auto releases = GradientReleaseTimes(graph_, model);
  ASSERT_EQ(releases.size(), 3u);
  EXPECT_DOUBLE_EQ(releases.at("b"), 2);
  EXPECT_DOUBLE_EQ(releases.at("a"), 6);
  EXPECT_DOUBLE_EQ(releases.at("fed"), 0);
}

TEST_F(CostTest, Collectives) {
  CostModel model;
  model.link_gbps = 8;  // 1000 bytes a microsecond
  model.link_latency_us = 5;
  EXPECT_EQ(CollectiveMicroseconds(4000, model), 0.0);
  model.world_size = 4;
  EXPECT_DOUBLE_EQ(CollectiveMicroseconds(4000, model), 5 + 4 * 0.75);
  EXPECT_DOUBLE_EQ(NodeMicroseconds(Make("onnxtrain.ReduceScatter", {{1000}}, {{250}}), model), 5 + 4 * 0.75);
  EXPECT_DOUBLE_EQ(NodeMicroseconds(Make("onnxtrain.AllReduce", {{1000}}, {{1000}}), model), 2 * (5 + 4 * 0.75));
  const LinkCost link = LinkCostOf(model);
  EXPECT_DOUBLE_EQ(link.latency_us, 5);
  EXPECT_NEAR(link.us_per_byte, 0.75e-3, 1e-12);
}

}  // namespace
}  // namespace onnxtrain
