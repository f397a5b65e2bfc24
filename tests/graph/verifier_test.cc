// SPDX-License-Identifier: Apache-2.0
#include "graph/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "graph/op_registry.h"
#include "graph/program_text.h"

namespace onnxtrain {
namespace {

using ::testing::HasSubstr;

const TensorType kVector{DType::kFloat, {4}};

Graph NewGraph(const std::string& name = "step") { return Graph(OpRegistry::Default(), name); }

Value* AddRelu(Graph& graph, Value* x, const std::string& name, std::vector<TensorType> types = {}) {
  return (*graph.Insert(nullptr, {"Relu", {x}, {}, {name}, "", std::move(types)}))->output(0);
}

void ExpectBroken(const Graph& graph, const std::string& message) {
  const Status status = VerifyGraph(graph);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr(message));
}

TEST(VerifyGraph, AcceptsAStep) {
  Graph graph = NewGraph();
  Value* x = graph.AddInput("x", kVector);
  Value* w = graph.AddState("w", kVector);
  GraphBuilder build(graph, nullptr, "");
  Value* y = build.Mul(x, w);
  Value* loss = build.ReduceSum(build.Add(y, y), {0}, false);
  graph.SetUpdate(w, y);
  graph.AddOutput(loss);
  graph.SetRole("loss", loss);
  graph.SetRole("gradient/w", x);
  EXPECT_EQ(VerifyGraph(graph).message(), "");
}

TEST(VerifyGraph, NamesAndTypesAreNeeded) {
  Graph nameless = NewGraph("");
  ExpectBroken(nameless, "a graph without a name");
  Graph graph = NewGraph();
  graph.AddInput("", kVector);
  ExpectBroken(graph, "a value without a name");
  Graph untyped = NewGraph();
  untyped.AddState("w", TensorType{});
  ExpectBroken(untyped, "'w' has no type");
}

TEST(VerifyGraph, NodesStandInTopologicalOrder) {
  Graph graph = NewGraph();
  Value* a = AddRelu(graph, graph.AddInput("x", kVector), "a");
  Value* b = AddRelu(graph, a, "b");
  graph.MoveBefore(b->producer(), a->producer());
  ExpectBroken(graph, "reads 'a' before Relu node of 'a' writes it");
}

TEST(VerifyGraph, ValuesBelongToTheGraph) {
  Graph other = NewGraph("other");
  Value* foreign = other.AddInput("x", kVector);
  Graph graph = NewGraph();
  AddRelu(graph, foreign, "y");
  ExpectBroken(graph, "reads 'x' of another graph");
  ExpectBroken(other, "the consumers of 'x' are not the nodes");
}

TEST(VerifyGraph, TypesAreThoseOfInference) {
  Graph graph = NewGraph();
  AddRelu(graph, graph.AddInput("x", kVector), "y", {{DType::kFloat, {5}}});
  ExpectBroken(graph, "writes 'y' of type float[5], inference gives float[4]");
  Graph unfit = NewGraph();
  AddRelu(unfit, unfit.AddInput("x", {DType::kBool, {4}}), "y", {{DType::kBool, {4}}});
  ExpectBroken(unfit, "Relu node of 'y' does not fit its inputs");
}

TEST(VerifyGraph, UpdatesOutputsAndRolesAreOfThisGraph) {
  Graph other = NewGraph("other");
  Value* foreign = other.AddInput("x", kVector);
  Graph updated = NewGraph();
  updated.SetUpdate(updated.AddState("w", kVector), foreign);
  ExpectBroken(updated, "state 'w' is updated by 'x' of another graph");
  Graph fetched = NewGraph();
  fetched.AddOutput(foreign);
  ExpectBroken(fetched, "output 'x' belongs to another graph");
  Graph named = NewGraph();
  named.SetRole("loss", foreign);
  ExpectBroken(named, "role 'loss' is a value of another graph");
}

TEST(VerifyGraph, AnOutputIsListedOnce) {
  Graph graph = NewGraph();
  Value* x = graph.AddInput("x", kVector);
  graph.AddOutput(x);
  graph.AddOutput(x);
  ExpectBroken(graph, "output 'x' is listed twice");
}

TEST(VerifyGraph, RolesHaveTheirShapes) {
  Graph loss = NewGraph();
  loss.SetRole("loss", loss.AddInput("x", kVector));
  ExpectBroken(loss, "role 'loss' needs one element, 'x' is float[4]");
  Graph gradient = NewGraph();
  gradient.AddState("w", {DType::kFloat, {5}});
  gradient.SetRole("gradient/w", gradient.AddInput("g", kVector));
  ExpectBroken(gradient, "the gradient of 'w' of type float[5] is 'g' of type float[4]");
}

std::string ProgramError(const std::string& text) {
  StatusOr<Program> program = ReadProgramText(text);
  return program.ok() ? VerifyProgram(*program).message() : "unreadable: " + program.status().message();
}

// A program of one graph: metadata entries, what stands behind the signature, nodes.
std::string Text(const std::string& metadata, const std::string& tensors, const std::string& nodes,
                 const std::string& name = "step") {
  return "<opset_import: [\"\" : 24, \"onnxtrain\" : 1], metadata_props: [" + metadata + "]>\n" + name +
         " (float[4] x) => () <" + tensors + "> {" + nodes + "}";
}

constexpr char kLayout[] = R"("world_size" : "2", "layout" : "world_size 2",
                              "layout.0" : "bucket float[256] 0=w[4]g0@0 1=v[3]g0@64")";

std::string WithLayout(const std::string& tensors, const std::string& nodes, const std::string& metadata = "") {
  return ProgramError(Text(kLayout + metadata, tensors, nodes));
}

TEST(VerifyProgram, AcceptsBucketsOfTheLayout) {
  EXPECT_EQ(WithLayout("float[128] p, float[3] v",
                       R"(flat = onnxtrain.BucketPack <bucket = 0, elements = 256, offsets = [0, 64]> (x, v)
                          shard = onnxtrain.ReduceScatter <bucket = 0, op = "sum", world_size = 2> (flat)
                          new = Add (p, shard)
                          whole = onnxtrain.AllGather <bucket = 0, world_size = 2> (new)
                          a, b = onnxtrain.BucketUnpack <bucket = 0, offsets = [0, 64], shapes = ["4", "3"]> (whole))",
                       R"(, "state.p" : "parameter bucket=0 sharded parameter", "state.v" : "frozen",
                            "update.p" : "new")"),
            "");
}

TEST(VerifyProgram, GraphsAreVerified) {
  StatusOr<Program> program = ReadProgramText(Text("", "", ""));
  program->FindGraph("step")->AddOutput(program->FindGraph("step")->inputs()[0]);
  program->FindGraph("step")->AddOutput(program->FindGraph("step")->inputs()[0]);
  EXPECT_THAT(VerifyProgram(*program).message(), HasSubstr("graph 'step': output 'x' is listed twice"));
}

TEST(VerifyProgram, NumbersArePositiveAndAgree) {
  Program program;
  program.world_size = 0;
  EXPECT_THAT(VerifyProgram(program).message(), HasSubstr("world size 0"));
  program.world_size = 1;
  program.accumulation = 0;
  EXPECT_THAT(VerifyProgram(program).message(), HasSubstr("accumulation 0"));
  program.accumulation = 1;
  StatusOr<Program> other = ReadProgramText(Text(kLayout, "", ""));
  other->world_size = 3;
  EXPECT_THAT(VerifyProgram(*other).message(), HasSubstr("the Layout is for 2 ranks, the program for 3"));
}

TEST(VerifyProgram, TableEntriesAreComplete) {
  const auto error_of = [](StateEntry entry) {
    Program program;
    program.AddState(std::move(entry));
    return VerifyProgram(program).message();
  };
  EXPECT_THAT(error_of({"", kVector, StateClass::kFrozen, "frozen", "w"}), HasSubstr("a state without a name"));
  EXPECT_THAT(error_of({"w", {}, StateClass::kFrozen, "frozen", "w"}), HasSubstr("state 'w' has no type"));
  EXPECT_THAT(error_of({"w", kVector, StateClass::kFrozen, "", "w"}), HasSubstr("state 'w' has no role"));
  EXPECT_THAT(error_of({"w", kVector, StateClass::kFrozen, "frozen", ""}), HasSubstr("names no canonical parameter"));
  EXPECT_THAT(error_of({"w", kVector, StateClass::kFrozen, "frozen", "w", -1, true}),
              HasSubstr("is sharded and in no"));
  EXPECT_THAT(error_of({"w", kVector, StateClass::kFrozen, "frozen", "w", 0}), HasSubstr("holds the parts of many"));
  EXPECT_THAT(error_of({"w", kVector, StateClass::kFrozen, "frozen", "", 0}), HasSubstr("bucket 0 is not among"));
}

TEST(VerifyProgram, StatesOfABucketHaveItsSize) {
  EXPECT_THAT(WithLayout("float[256] p", "", R"(, "state.p" : "parameter bucket=0 sharded parameter")"),
              HasSubstr("it has type float[256], the Layout gives 128 elements to a shard of bucket 0"));
  EXPECT_THAT(WithLayout("float[255] p", "", R"(, "state.p" : "replica bucket=0 replica")"),
              HasSubstr("the Layout gives 256 elements to bucket 0"));
}

TEST(VerifyProgram, ACanonicalTensorHasOneState) {
  EXPECT_THAT(ProgramError(Text(R"("state.a" : "parameter parameter/w", "state.b" : "parameter parameter/w")",
                                "float[4] a, float[4] b", "")),
              HasSubstr("two states hold 'parameter/w'"));
}

TEST(VerifyProgram, StatesOfGraphsAreInTheTable) {
  Program program;
  Graph graph = NewGraph();
  graph.AddState("w", kVector);
  program.AddGraph(std::move(graph));
  EXPECT_THAT(VerifyProgram(program).message(), HasSubstr("graph 'step': state 'w' is not in the state table"));
  program.AddState({"w", {DType::kFloat, {5}}, StateClass::kParameter, "parameter", "w"});
  EXPECT_THAT(VerifyProgram(program).message(), HasSubstr("state 'w' is float[4], the state table says float[5]"));
}

TEST(VerifyProgram, InitialValuesHaveTheTypeOfTheirTensor) {
  EXPECT_THAT(
      ProgramError(Text(R"("state.w" : "parameter")", R"(float[4] w, float[1] "initial:parameter/w" = {1})", "")),
      HasSubstr("the initial value of 'parameter/w' is float[1], its state is float[4]"));
  EXPECT_THAT(WithLayout(R"(float[2] "initial:parameter/w" = {1, 2})", ""),
              HasSubstr("the initial value of 'w' has shape [2], the Layout says [4]"));
}

TEST(VerifyProgram, EvaluationChangesNothing) {
  EXPECT_THAT(ProgramError(Text(R"("update.w" : "x")", "float[4] w", "", "eval")),
              HasSubstr("state 'w' is updated, and evaluation must change nothing"));
}

TEST(VerifyProgram, BucketNodesFollowTheLayout) {
  EXPECT_THAT(WithLayout("float[256] f", "y = onnxtrain.ReduceScatter <bucket = 0, world_size = 4> (f)"),
              HasSubstr("world_size is 4, the program's is 2"));
  EXPECT_THAT(WithLayout("float[256] f", "y = onnxtrain.AllReduce <bucket = 1> (f)"),
              HasSubstr("bucket 1 is not among the Layout's 1"));
  EXPECT_THAT(WithLayout("float[200] f", "y = onnxtrain.AllReduce <bucket = 0> (f)"),
              HasSubstr("its input 'f' has 200 elements, the Layout's bucket 256"));
  EXPECT_THAT(WithLayout("float[100] f", "y = onnxtrain.AllGather <bucket = 0, world_size = 2> (f)"),
              HasSubstr("its output 'y' has 200 elements"));
  EXPECT_THAT(WithLayout("", "y = onnxtrain.BucketPack <bucket = 0, elements = 128, offsets = [0]> (x)"),
              HasSubstr("its output 'y' has 128 elements"));
}

TEST(VerifyProgram, TensorsLieWhereTheLayoutPutsThem) {
  EXPECT_THAT(WithLayout("", "y = onnxtrain.BucketPack <bucket = 0, elements = 256, offsets = [0]> (x)"),
              HasSubstr("it has 1 tensors, the Layout's bucket 2 parameters"));
  EXPECT_THAT(
      WithLayout("float[3] v", "y = onnxtrain.BucketPack <bucket = 0, elements = 256, offsets = [0, 4]> (x, v)"),
      HasSubstr("tensor 1 is at element 4, the Layout has 'v' at 64"));
  EXPECT_THAT(
      WithLayout("float[2] v", "y = onnxtrain.BucketPack <bucket = 0, elements = 256, offsets = [0, 64]> (x, v)"),
      HasSubstr("tensor 1 'v' has 2 elements"));
}

TEST(VerifyProgram, RanksWithoutSamplesJoinEveryCollective) {
  const std::string full = Text("", "", "y = onnxtrain.AllReduce (x) z = onnxtrain.AllReduce (y)");
  const auto with_zero = [&](const std::string& nodes) {
    return ProgramError(full + "\n---\n" + Text("", "", nodes, "zero_step"));
  };
  EXPECT_EQ(with_zero("a = onnxtrain.AllReduce (x) b = onnxtrain.AllReduce (a)"), "");
  EXPECT_THAT(with_zero("a = onnxtrain.AllReduce (x)"), HasSubstr("has 1 collectives, 'step' has 2"));
  EXPECT_THAT(with_zero("a = onnxtrain.AllReduce (x) b = onnxtrain.AllReduce <op = \"max\"> (a)"),
              HasSubstr("collective 1 of graph 'zero_step'"));
  EXPECT_THAT(ProgramError(Text("", "", "", "zero_last")), HasSubstr("stands in for a graph that is not there"));
}

}  // namespace
}  // namespace onnxtrain
