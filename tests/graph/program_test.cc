// SPDX-License-Identifier: Apache-2.0
#include "graph/program.h"

#include <gtest/gtest.h>

#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

StatusOr<std::vector<TensorType>> SameType(const InferContext& context) {
  return std::vector<TensorType>{context.inputs[0]};
}

OpRegistry TestRegistry() {
  OpRegistry registry;
  OpDef relu;
  relu.name = "Relu";
  relu.infer = SameType;
  registry.Add(relu);
  OpDef reduce;
  reduce.name = "onnxtrain.AllReduce";
  reduce.infer = SameType;
  reduce.collective = true;
  registry.Add(reduce);
  return registry;
}

class ProgramTest : public ::testing::Test {
 protected:
  // x[batch] -> Relu -> output; w[3] -> AllReduce -> update of w.
  Program Make(int64_t batch) const {
    Program program;
    program.AddState({"w", {DType::kFloat, {3}}, StateClass::kParameter, "parameter", "fc.weight", -1, false});
    program.initial["parameter/fc.weight"] = Tensor::FromVector<float>({3}, {1, 2, 3});
    Graph graph(registry_, "step");
    Value* x = graph.AddInput("x", {DType::kFloat, {batch}});
    Value* w = graph.AddState("w", {DType::kFloat, {3}});
    graph.AddOutput((*graph.Insert(nullptr, {"Relu", {x}, {}, {"y"}, "", {}}))->output(0));
    graph.SetUpdate(
        w,
        (*graph.Insert(nullptr, {"onnxtrain.AllReduce", {w}, {{"op", std::string("sum")}}, {"r"}, "", {}}))->output(0));
    program.AddGraph(std::move(graph));
    return program;
  }

  OpRegistry registry_ = TestRegistry();
};

TEST_F(ProgramTest, NamesClassesAndCanonicalTensors) {
  EXPECT_EQ(NameOf(StateClass::kParameter), "parameter");
  EXPECT_EQ(NameOf(StateClass::kOptimizerState), "optimizer_state");
  EXPECT_EQ(NameOf(StateClass::kReplica), "replica");
  EXPECT_EQ(CanonicalName(Make(1).states()[0]), "parameter/fc.weight");
}

TEST_F(ProgramTest, CloneIsDeep) {
  Program program = Make(4);
  Program copy = program.Clone();
  EXPECT_EQ(Digest(copy), Digest(program));
  Graph* graph = copy.FindGraph("step");
  ASSERT_NE(graph, nullptr);
  ASSERT_NE(graph, program.FindGraph("step"));
  EXPECT_EQ(graph->FindValue("w")->update(), graph->FindValue("r"));
  copy.initial.clear();
  copy.EraseGraph("step");
  copy.EraseState("w");
  EXPECT_EQ(program.states().size(), 1u);
  EXPECT_EQ(program.initial.size(), 1u);
  EXPECT_NE(program.FindGraph("step"), nullptr);
  EXPECT_EQ(copy.FindState("w"), nullptr);
}

TEST_F(ProgramTest, EditsTheStateTable) {
  Program program = Make(4);
  StateEntry entry = *program.FindState("w");
  entry.state_class = StateClass::kFrozen;
  program.ReplaceState("w", entry);
  EXPECT_EQ(program.FindState("w")->state_class, StateClass::kFrozen);
  program.AddGraph(program.FindGraph("step")->Clone("eval"));
  EXPECT_EQ(program.graphs().size(), 2u);
  EXPECT_EQ(program.FindGraph("gather"), nullptr);
}

TEST_F(ProgramTest, DigestIgnoresBatchShapeOnly) {
  const uint64_t digest = Digest(Make(4));
  EXPECT_EQ(Digest(Make(7)), digest);

  Program ranks = Make(4);
  ranks.world_size = 2;
  EXPECT_NE(Digest(ranks), digest);

  Program accumulated = Make(4);
  accumulated.accumulation = 2;
  EXPECT_NE(Digest(accumulated), digest);

  Program frozen = Make(4);
  StateEntry entry = *frozen.FindState("w");
  entry.state_class = StateClass::kFrozen;
  frozen.ReplaceState("w", entry);
  EXPECT_NE(Digest(frozen), digest);

  Program bucketed = Make(4);
  LayoutParameter parameter{"fc.weight", {DType::kFloat, {3}}, 0, 0, 0};
  bucketed.set_layout(Layout::Make({parameter}, {{0}}, 1));
  EXPECT_NE(Digest(bucketed), digest);

  Program other_attribute = Make(4);
  Graph* graph = other_attribute.FindGraph("step");
  graph->SetAttribute(graph->FindValue("r")->producer(), "op", std::string("max"));
  EXPECT_NE(Digest(other_attribute), digest);

  Program more_collectives = Make(4);
  graph = more_collectives.FindGraph("step");
  ASSERT_TRUE(graph->Insert(nullptr, {"onnxtrain.AllReduce", {graph->FindValue("w")}, {}, {"s"}, "", {}}).ok());
  EXPECT_NE(Digest(more_collectives), digest);
}

TEST_F(ProgramTest, DeathOnBrokenPromises) {
  Program program = Make(4);
  EXPECT_DEATH(program.AddState(*program.FindState("w")), "two states");
  EXPECT_DEATH(program.EraseState("w"), "is used by graph step");
  StateEntry bucket = *program.FindState("w");
  bucket.bucket = 0;
  EXPECT_DEATH(CanonicalName(bucket), "many canonical tensors");
}

}  // namespace
}  // namespace onnxtrain
