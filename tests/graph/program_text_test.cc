// SPDX-License-Identifier: Apache-2.0
#include "graph/program_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/op_registry.h"
#include "graph/text_reader.h"
#include "graph/text_writer.h"

namespace onnxtrain {
namespace {

using ::testing::HasSubstr;

std::string Rewritten(const std::string& text, const TextOptions& options = {}) {
  StatusOr<Program> program = ReadProgramText(text);
  return program.ok() ? WriteProgramText(*program, options) : program.status().message();
}

std::string ErrorOf(const std::string& text) {
  StatusOr<Program> program = ReadProgramText(text);
  return program.ok() ? "read without error" : program.status().message();
}

constexpr char kCanonical[] = R"(<
  opset_import: ["" : 24, "onnxtrain" : 1],
  metadata_props: [
    "world_size" : "2",
    "accumulation" : "4",
    "state.w" : "parameter",
    "state.b" : "frozen",
    "state.w.moment1" : "optimizer_state moment1/w",
    "state.step" : "counter type=int64",
    "layout" : "world_size 2",
    "layout.0" : "bucket float[256] 0=w[4,3]g0@0",
    "update.w" : "w_new",
    "update.w.moment1" : "sum",
    "role.gradient/w" : "g",
    "role.loss" : "total"
  ]
>
step (float lr, float[4,3] g) => (float total)
<
  float[4,3] w,
  float[3] b = {0.5, -1.0, 1e-05},
  float[4,3] "w.moment1",
  int64[1] axes = {0},
  float "initial:parameter/other" = {2.0}
>
{
  scaled = Mul (g, lr)
  w_new = Sub (w, scaled)
  sum = Add ("w.moment1", g)
  biased = Add (sum, b)
  partial = ReduceSum <keepdims = 0, noop_with_empty_axes = 1> (biased, axes)
  total = ReduceSum <keepdims = 0> (partial, "")
}
)";

TEST(ProgramText, CanonicalTextReadsAndWritesItself) { EXPECT_EQ(Rewritten(kCanonical), kCanonical); }

TEST(ProgramText, StateTableLayoutAndInitialValuesAreRead) {
  StatusOr<Program> program = ReadProgramText(kCanonical);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(program->world_size, 2);
  EXPECT_EQ(program->accumulation, 4);
  ASSERT_EQ(program->states().size(), 4u);
  EXPECT_EQ(program->states()[1].state_class, StateClass::kFrozen);
  EXPECT_EQ(CanonicalName(program->states()[2]), "moment1/w");
  EXPECT_EQ(program->states()[3].type, (TensorType{DType::kInt64, {}}));
  EXPECT_EQ(program->layout().parameters().size(), 1u);
  EXPECT_EQ(program->initial.at("frozen/b").DoubleAt(1), -1.0);
  EXPECT_EQ(program->initial.at("parameter/other").DoubleAt(0), 2.0);
  EXPECT_EQ(program->FindGraph("step")->FindRole("gradient/w")->name(), "g");
}

TEST(ProgramText, HandWrittenTextNeedsNoHeader) {
  const std::string text = R"(
    # a comment
    step (float[2] x) => (y) <float[2] w, float[2] k = {1, 2}, float[2] y> {
      t = Mul (x, w)   # another
      y = Add (t, k)
    })";
  StatusOr<Program> program = ReadProgramText(text);
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_EQ(program->states().size(), 1u);
  EXPECT_EQ(CanonicalName(program->states()[0]), "parameter/w");
  const std::string canonical = WriteProgramText(*program);
  EXPECT_EQ(Rewritten(canonical), canonical);
}

TEST(ProgramText, GraphsShareTheStateTable) {
  const std::string text = R"(<
  opset_import: ["" : 24, "onnxtrain" : 1],
  metadata_props: [
    "state.w" : "parameter",
    "state.n" : "buffer"
  ]
>
eval (float[2] x) => (float[2] y)
<
  float[2] w
>
{
  y = Mul (x, w)
}
---
<
  opset_import: ["" : 24, "onnxtrain" : 1],
  metadata_props: [
    "update.n" : "n_new"
  ]
>
step (float[2] x) => ()
<
  float[2] w,
  float[2] n
>
{
  n_new = Mul (x, w)
}
)";
  EXPECT_EQ(Rewritten(text), text);
}

TEST(ProgramText, ShardedBucketsSurvive) {
  const std::string text = R"(<
  opset_import: ["" : 24, "onnxtrain" : 1],
  metadata_props: [
    "state.bucket0.parameter" : "parameter bucket=0 sharded parameter",
    "state.bucket0.replica" : "replica bucket=0 replica",
    "state.bucket1.moment1" : "optimizer_state bucket=1 sharded type=float[128] moment1"
  ]
>
step () => (float[128] y)
<
  float[128] "bucket0.parameter",
  float[256] "bucket0.replica"
>
{
  y = Relu ("bucket0.parameter")
}
)";
  EXPECT_EQ(Rewritten(text), text);
}

Graph GraphOfOneNode(Attributes attributes) {
  Graph graph(OpRegistry::Default(), "g");
  Value* x = graph.AddInput("x", {DType::kFloat, {2}});
  NodeSpec spec{"Relu", {x}, std::move(attributes), {"y"}, "", {{DType::kFloat, {2}}}};
  graph.AddOutput((*graph.Insert(nullptr, std::move(spec)))->output(0));
  return graph;
}

TEST(ProgramText, AttributesPrintSortedAndExactly) {
  const Graph graph = GraphOfOneNode({{"f", 1.0f},
                                      {"b", std::numeric_limits<float>::denorm_min()},
                                      {"i", std::numeric_limits<int64_t>::min()},
                                      {"s", std::string("a \"quoted\" \\ text")},
                                      {"n", std::vector<int64_t>{}},
                                      {"r", std::vector<float>{0.1f, -INFINITY, 3e30f}},
                                      {"z", std::vector<std::string>{"x", ""}},
                                      {"t", Tensor::FromVector<double>({2}, {0.1, -0.0})}});
  EXPECT_THAT(WriteGraphText(graph), HasSubstr("y = Relu <b = 1e-45, f = 1.0, i = -9223372036854775808, n: ints = [], "
                                               "r = [0.1, -inf, 3e+30], s = \"a \\\"quoted\\\" \\\\ text\", "
                                               "t = double[2] {0.1, -0.0}, z = [\"x\", \"\"]> (x)"));
}

TEST(ProgramText, EveryElementTypeOfATensorReadsBack) {
  Graph graph(OpRegistry::Default(), "g");
  const Tensor values = Tensor::FromVector<double>({3}, {0, 1, 100});
  std::map<std::string, Tensor> wanted;
  for (const DType dtype :
       {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBfloat16, DType::kInt8, DType::kInt16, DType::kInt32,
        DType::kInt64, DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64, DType::kBool}) {
    const std::string name = "c_" + std::string(NameOf(dtype));
    wanted[name] = values.CastTo(dtype);
    graph.AddConstant(name, wanted[name]);
  }
  wanted["special"] = Tensor::FromVector<float>({4}, {NAN, INFINITY, -INFINITY, -0.0f});
  wanted["scalar"] = Tensor::Scalar<int64_t>(-7);
  wanted["empty"] = Tensor(TensorType{DType::kFloat, {0, 3}});
  wanted["/odd.name::0"] = Tensor::Scalar(0.1f);
  for (const char* name : {"special", "scalar", "empty", "/odd.name::0"}) graph.AddConstant(name, wanted[name]);

  StatusOr<TextGraph> read = ReadGraphText(WriteGraphText(graph), OpRegistry::Default());
  ASSERT_TRUE(read.ok()) << read.status().message();
  for (const auto& [name, tensor] : wanted) {
    const Value* value = read->graph.FindValue(name);
    ASSERT_NE(value, nullptr) << name;
    EXPECT_TRUE(value->constant()->Identical(tensor)) << name;
  }
}

TEST(ProgramText, LargeTensorsPrintAsHashUnlessFull) {
  Graph graph(OpRegistry::Default(), "step");
  graph.AddOutput(graph.AddConstant("k", Tensor(TensorType{DType::kFloat, {17}})));
  Program program;
  program.AddGraph(std::move(graph));
  const std::string brief = WriteProgramText(program);
  EXPECT_THAT(brief, HasSubstr("float[17] k  # hash "));
  const std::string full = WriteProgramText(program, {.full = true});
  EXPECT_EQ(Rewritten(full, {.full = true}), full);
  EXPECT_NE(Rewritten(brief), brief) << "a constant without its bytes has become a state";
}

TEST(ProgramText, MistakesAreNamed) {
  EXPECT_THAT(ErrorOf("step (float x) => (float y) { y = Relu (x) "), HasSubstr("line"));
  EXPECT_THAT(ErrorOf("step (float x) => (float y) { y = Relu (z) }"), HasSubstr("reads 'z', which is not defined"));
  EXPECT_THAT(ErrorOf("step (float x) => (float y) { y = Relu (x) y = Relu (x) }"), HasSubstr("'y' is defined twice"));
  EXPECT_THAT(ErrorOf("step (float x) => (double y) { y = Relu (x) }"),
              HasSubstr("'y' is declared double[] and is float[]"));
  EXPECT_THAT(ErrorOf("step (float[N] x) => (y) { y = Relu (x) }"),
              HasSubstr("'x' needs a type with known dimensions"));
  EXPECT_THAT(ErrorOf("step (float x) => (y) { y = Frobnicate (x) }"), HasSubstr("Frobnicate"));
  EXPECT_THAT(ErrorOf("<opset_import: [\"\" : 17]> step (float x) => (y) { y = Relu (x) }"), HasSubstr("opset 24"));
  EXPECT_THAT(ErrorOf("<metadata_props: [\"update.w\" : \"x\"]> step (float[2] x) => () <float[3] w> {}"),
              HasSubstr("state 'w' of type float[3] is updated by 'x' of type float[2]"));
  EXPECT_THAT(ErrorOf("<metadata_props: [\"role.loss\" : \"nothing\"]> step (float x) => () {}"),
              HasSubstr("'nothing'"));
  EXPECT_THAT(ErrorOf("<metadata_props: [\"state.w\" : \"weight\"]> step (float x) => () {}"),
              HasSubstr("'weight' is no class of state"));
  EXPECT_THAT(ErrorOf("<metadata_props: [\"state.w\" : \"parameter\"]> step (float x) => () {}"),
              HasSubstr("needs type="));
  EXPECT_THAT(ErrorOf("<metadata_props: [\"world_size\" : \"0\"]> step (float x) => () {}"), HasSubstr("world_size"));
  EXPECT_THAT(ErrorOf("step (float x) => () {}\n---\nstep (float x) => () {}"), HasSubstr("two graphs named 'step'"));
  EXPECT_THAT(ErrorOf("step (float x) => () <int64 k = {99999999999999999999}> {}"), HasSubstr("cannot be read"));
  EXPECT_THAT(ErrorOf("step (float[2] x) => () <float[2] k = {1}> {}"), HasSubstr("holds 1 elements"));
  EXPECT_THAT(ErrorOf("s (" + std::string(100000, '(')), HasSubstr("nests more than"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("dentifier expected"));
}

}  // namespace
}  // namespace onnxtrain
