// SPDX-License-Identifier: Apache-2.0
// The clean-up passes on small programs: what they take out, what they must leave, and the truth of their answer.
#include <gtest/gtest.h>

#include "graph/program_text.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/fold_constants.h"
#include "passes/merge_equal_nodes.h"

namespace onnxtrain {
namespace {

Program Read(const std::string& text) {
  StatusOr<Program> program = ReadProgramText(text);
  CHECK_WITH(program.ok(), program.status().message());
  return *std::move(program);
}

// Runs the pass twice: the second time it must say that nothing changed, and every time its answer must be true.
std::string RunTwice(const Pass& pass, Program& program) {
  std::string before = WriteProgramText(program);
  for (const bool first : {true, false}) {
    StatusOr<bool> changed = pass.Run(program);
    EXPECT_TRUE(changed.ok()) << changed.status().message();
    const std::string after = WriteProgramText(program);
    EXPECT_EQ(*changed, after != before);
    EXPECT_TRUE(first || !*changed) << "not a fixed point:\n" << after;
    before = after;
  }
  return before;
}

// The operators of a graph in order, with the names of their outputs: "y=Relu z=Neg".
std::string Nodes(const Program& program, std::string_view name = "step") {
  std::string text;
  for (const auto& node : program.FindGraph(name)->nodes()) {
    text += (text.empty() ? "" : " ") + node->output(0)->name() + "=" + node->op();
  }
  return text;
}

TEST(EliminateDeadNodes, KeepsWhatOutputsAndUpdatesNeed) {
  Program program = Read(R"(
<ir_version: 10, opset_import: ["" : 24, "onnxtrain" : 1], metadata_props: ["update.w" : "u", "role.r" : "dead"]>
step (float[2] x) => (float[2] y)
<float[2] w, float[2] unused, int64[1] axes = {0}>
{
  y = Relu(x)
  dead = Neg(y)
  deader = Exp(dead)
  u = Add(w, x)
  sum = onnxtrain.AllReduce(y)
}
)");
  RunTwice(*EliminateDeadNodes(), program);
  EXPECT_EQ(Nodes(program), "y=Relu u=Add sum=onnxtrain.AllReduce");
  const Graph& graph = *program.FindGraph("step");
  EXPECT_TRUE(graph.constants().empty());
  EXPECT_EQ(graph.states().size(), 1u);
  EXPECT_EQ(graph.FindRole("r"), nullptr);
  EXPECT_NE(program.FindState("unused"), nullptr);
}

TEST(FoldConstants, ShapeArithmeticDisappears) {
  Program program = Read(R"(
<ir_version: 10, opset_import: ["" : 24]>
step (float[8,4] x) => (float[8,4] y)
<int64[1] one = {1}, int64[1] zero = {0}, int64[1] eight = {8}>
{
  s = Shape(x)
  d = Gather(s, one)
  m = Mul(d, eight)
  f = Cast <to = 1>(m)
  y = Mul(x, f)
}
)");
  RunTwice(*FoldConstants(), program);
  EXPECT_EQ(Nodes(program), "y=Mul");
  const Graph& graph = *program.FindGraph("step");
  ASSERT_NE(graph.FindValue("f"), nullptr);
  EXPECT_TRUE(graph.FindValue("f")->constant()->Identical(Tensor::FromVector<float>({1}, {32})));
  EXPECT_EQ(graph.constants().size(), 2u);  // f, and zero that nobody read before either
}

TEST(FoldConstants, LeavesOutputsUpdatesAndWhatFails) {
  Program program = Read(R"(
<ir_version: 10, opset_import: ["" : 24], metadata_props: ["update.w" : "u"]>
step (float[2] x) => (int64[1] y, int64[1] z)
<int64[1] w, int64[1] one = {1}, int64[1] nought = {0}>
{
  y = Add(one, one)
  u = Neg(one)
  z = Div(one, nought)
  q = Div(one, nought)
  z2 = Add(q, w)
}
)");
  EXPECT_EQ(RunTwice(*FoldConstants(), program), WriteProgramText(program));
  EXPECT_EQ(Nodes(program), "y=Add u=Neg z=Div q=Div z2=Add");
}

TEST(FoldConstants, KeepsRolesAndTheSizeLimit) {
  const std::string text = R"(
<ir_version: 10, opset_import: ["" : 24], metadata_props: ["role.loss_weight" : "n"]>
step (float[2] x) => (float[64] y)
<int64[1] shape = {64}, float one = {1}>
{
  n = Neg(one)
  big = ConstantOfShape(shape)
  y = Add(big, n)
}
)";
  Program program = Read(text);
  FoldConstantsOptions options;
  options.max_bytes = 255;
  RunTwice(*FoldConstants(options), program);
  EXPECT_EQ(Nodes(program), "big=ConstantOfShape y=Add");
  ASSERT_NE(program.FindGraph("step")->FindRole("loss_weight"), nullptr);
  EXPECT_EQ(program.FindGraph("step")->FindRole("loss_weight")->constant()->DoubleAt(0), -1.0);

  Program folded = Read(text);
  options.max_bytes = 256;
  RunTwice(*FoldConstants(options), folded);
  EXPECT_EQ(Nodes(folded), "y=Add");
}

TEST(MergeEqualNodes, MergesConstantsNodesAndIdentities) {
  Program program = Read(R"(
<ir_version: 10, opset_import: ["" : 24], metadata_props: ["role.r" : "b"]>
step (float[2,3] x) => (float[3,2] y)
<float one = {1}, float uno = {1}>
{
  a = Transpose(x)
  b = Transpose(x)
  c = Identity(b)
  p = Mul(a, one)
  q = Mul(c, uno)
  y = Add(p, q)
}
)");
  RunTwice(*MergeEqualNodes(), program);
  EXPECT_EQ(Nodes(program), "a=Transpose p=Mul y=Add");
  EXPECT_EQ(program.FindGraph("step")->constants().size(), 1u);
  EXPECT_EQ(program.FindGraph("step")->FindRole("r")->name(), "a");
}

TEST(MergeEqualNodes, KeepsOutputNamesAndDifferences) {
  Program program = Read(R"(
<ir_version: 10, opset_import: ["" : 24, "onnxtrain" : 1]>
step (float[2,2] x) => (float[2,2] y, float[2,2] z, float[2,2] w)
{
  a = Neg(x)
  y = Neg(x)
  z = Neg(x)
  t = Transpose <perm = [1, 0]>(y)
  u = Transpose <perm = [0, 1]>(y)
  r = onnxtrain.AllReduce(t)
  s = onnxtrain.AllReduce(t)
  v = Add(r, s)
  w = Add(v, u)
}
)");
  RunTwice(*MergeEqualNodes(), program);
  EXPECT_EQ(Nodes(program), "y=Neg z=Neg t=Transpose r=onnxtrain.AllReduce s=onnxtrain.AllReduce v=Add w=Add");
}

TEST(MergeEqualNodes, LeavesAnInputThatIsAnOutput) {
  Program program = Read(R"(
<ir_version: 10, opset_import: ["" : 24]>
step (float[2] x) => (float[2] y)
{
  y = Identity(x)
}
)");
  RunTwice(*MergeEqualNodes(), program);
  EXPECT_EQ(Nodes(program), "y=Identity");
}

}  // namespace
}  // namespace onnxtrain
