// SPDX-License-Identifier: Apache-2.0
#include "graph/traps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> TrapsOf(const std::string& graph) {
  StatusOr<OnnxModel> model =
      OnnxModel::ParseText("<ir_version: 8, opset_import: [\"\" : 17]>\n" + graph, "", "model.onnxtxt");
  CHECK_WITH(model.ok(), model.status().message());
  StatusOr<std::vector<std::string>> traps = FindTraps(*model, {});
  EXPECT_TRUE(traps.ok()) << traps.status().message();
  return *traps;
}

TEST(Traps, CleanModel) {
  EXPECT_THAT(TrapsOf(R"(
g (float[N,2] x) => (float[N,2] y)
<float[2,2] fc_weight = {1, 2, 3, 4}>
{
  y = MatMul(x, fc_weight)
})"),
              ElementsAre());
}

TEST(Traps, FalseTies) {
  EXPECT_THAT(TrapsOf(R"(
g (float[N,2] x) => (float[N,2] y)
<float[2] ln_0_weight = {1, 2}>
{
  ln_1_weight = Identity(ln_0_weight)
  ln_2_weight = Identity(ln_0_weight)
  a = Mul(x, ln_1_weight)
  y = Mul(a, ln_2_weight)
})"),
              ElementsAre(AllOf(HasSubstr("'ln_1_weight', 'ln_2_weight' are Identities of 'ln_0_weight'"),
                                HasSubstr("--untie"))));
}

TEST(Traps, IdentitiesThatTieNothing) {
  EXPECT_THAT(TrapsOf(R"(
g (float[N,2] x) => (float[N,2] y)
<float[2] mask = {1, 2}, float[2] w = {1, 3}>
{
  alias = Identity(mask)
  alias_1 = Identity(mask)
  copy = Identity(w)
  a = Mul(x, alias)
  b = Mul(a, alias_1)
  y = Mul(b, copy)
})"),
              ElementsAre());
}

TEST(Traps, FoldedWeightsAndCutTies) {
  EXPECT_THAT(TrapsOf(R"(
g (int64[N,3] x) => (float[N,3,2] y)
<float[2,3] wte_weight = {1, 2, 3, 4, 5, 6}, float[3,2] val_7 = {1, 4, 2, 5, 3, 6}, float[2] val_8 = {0, 0}>
{
  e = Gather(wte_weight, x)
  f = MatMul(e, val_7)
  y = Add(f, val_8)
})"),
              ElementsAre(HasSubstr("'wte_weight', 'val_7' hold the same numbers"),
                          HasSubstr("'val_7': constant folding took the names")));
}

TEST(Traps, InferenceForm) {
  EXPECT_THAT(TrapsOf(R"(
g (float[N,2,4,4] x) => (float[N,2,4,4] z)
<float[2] s = {1, 1}, float[2] b = {0, 0}, float[2] m = {0, 0}, float[2] v = {1, 1}>
{
  y = BatchNormalization(x, s, b, m, v)
  z = Dropout(y)
})"),
              ElementsAre(HasSubstr("1 BatchNormalization nodes are in inference form"),
                          HasSubstr("1 Dropout nodes are in inference form")));
}

TEST(Traps, FixedBatch) {
  EXPECT_THAT(TrapsOf(R"(
g (float[4,2] x, int64[4] t) => (float[4,2] y)
{
  y = Neg(x)
})"),
              ElementsAre(HasSubstr("--batch-size must be 4")));
  EXPECT_THAT(TrapsOf("g (float[4,2] x, int64[N] t) => (float[4,2] y) { y = Neg(x) }"), ElementsAre());
}

// One reducing node behind what keeps its number.
std::string TrapOfLoss(const std::string& op, Attributes attributes = {}) {
  OpRegistry registry;
  for (const char* name : {"Identity", "ReduceMean", "ReduceSum", "SoftmaxCrossEntropyLoss"}) {
    OpDef def;
    def.name = name;
    registry.Add(def);
  }
  Graph graph(registry);
  Value* x = graph.AddInput("x", {DType::kFloat, {4}});
  const TensorType scalar{DType::kFloat, {}};
  Value* sum = (*graph.Insert(nullptr, {op, {x}, std::move(attributes), {"s"}, "", {scalar}}))->output(0);
  return LossReductionTrap(*(*graph.Insert(nullptr, {"Identity", {sum}, {}, {"loss"}, "", {scalar}}))->output(0));
}

TEST(Traps, ReductionOfTheLoss) {
  EXPECT_EQ(TrapOfLoss("ReduceMean"), "");
  EXPECT_EQ(TrapOfLoss("SoftmaxCrossEntropyLoss"), "");
  EXPECT_THAT(TrapOfLoss("SoftmaxCrossEntropyLoss", {{"reduction", std::string("sum")}}),
              HasSubstr("has reduction 'sum', not a mean"));
  EXPECT_THAT(TrapOfLoss("ReduceSum"), HasSubstr("cannot be seen"));
}

}  // namespace
}  // namespace onnxtrain
