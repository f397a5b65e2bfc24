// SPDX-License-Identifier: Apache-2.0
#include "graph/onnx_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text_writer.h"
#include "graph/verifier.h"

namespace onnxtrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

StatusOr<Graph> Read(const std::string& text, SpecializeOptions options = {}) {
  StatusOr<OnnxModel> model = OnnxModel::ParseText(text, "", "m.onnxtxt");
  if (!model.ok()) return model.status();
  return Specialize(*model, options);
}

// The canonical text of the graph without its header, or the error.
std::string Body(const std::string& text, SpecializeOptions options = {}) {
  const StatusOr<Graph> graph = Read(text, std::move(options));
  if (!graph.ok()) return graph.status().message();
  const Status verified = VerifyGraph(*graph);
  if (!verified.ok()) return "not valid: " + verified.message();
  const std::string written = WriteGraphText(*graph);
  return written.substr(written.find(">\n") + 2);
}

SpecializeOptions States(std::set<std::string> names) {
  SpecializeOptions options;
  options.is_state = [names](const ModelInitializer& initializer) { return names.count(initializer.name) != 0; };
  return options;
}

SpecializeOptions Outputs(std::vector<std::string> names) {
  SpecializeOptions options;
  options.outputs = std::move(names);
  return options;
}

constexpr char kHeader[] = R"(<ir_version: 8, opset_import: ["" : 17]>)";

TEST(Specialize, StatesConstantsAndNamesOfTheFile) {
  EXPECT_EQ(Body(std::string(kHeader) + R"(
      g (float[N,2] x) => (float[N,2] y) <float[2] w = {1, 2}, float[2] b = {3, 4}> {
        t = Mul (x, w) y = Add (t, b) })",
                 [] {
                   SpecializeOptions options = States({"w"});
                   options.dims["N"] = 3;
                   return options;
                 }()),
            R"(step (float[3,2] x) => (float[3,2] y)
<
  float[2] w,
  float[2] b = {3.0, 4.0}
>
{
  t = Mul (x, w)
  y = Add (t, b)
}
)");
}

TEST(Specialize, OriginsNameTheNodesOfTheFile) {
  const StatusOr<Graph> graph =
      Read(std::string(kHeader) + "g (float[2] x) => (float[2] y) { [\"/fc/Relu\"] y = Relu (x) }");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->nodes().front()->origin(), "/fc/Relu (Relu, opset 17)");
}

TEST(Specialize, OnlyWhatIsNeededIsRead) {
  const std::string text = std::string(kHeader) + R"(
      g (float[2] x, float[M] unused) => (float[2] y, float[2] z) <float[2] w = {1, 2}, float[2] v = {1, 2}> {
        a = com.example.Unknown (v)
        z = Add (a, unused)
        y = Mul (x, w) })";
  EXPECT_EQ(Body(text, Outputs({"y"})), R"(step (float[2] x) => (float[2] y)
<
  float[2] w = {1.0, 2.0}
>
{
  y = Mul (x, w)
}
)");
}

TEST(Specialize, AnyValueCanBeAskedFor) {
  EXPECT_THAT(
      Body(std::string(kHeader) + "g (float[2] x) => (float[2] y) { t = Neg (x) y = Relu (t) }", Outputs({"t", "x"})),
      HasSubstr("(float[2] x) => (float[2] t, float[2] x)"));
  const Status status =
      Read(std::string(kHeader) + "g (float[2] x) => (float[2] out) { out = Neg (x) }", Outputs({"oot"})).status();
  EXPECT_EQ(status.code(), StatusCode::kUsage);
  EXPECT_THAT(status.message(), HasSubstr("no value 'oot', did you mean 'out'?"));
}

TEST(Specialize, ShapeArithmeticFoldsAway) {
  EXPECT_EQ(Body(std::string(kHeader) + R"(
      g (float[2,3,4] x) => (float[6,4] y)
      <int64[1] minus_one = {-1}, int64[1] two = {2}, int64[1] zero = {0}> {
        s = Shape (x)
        last = Gather <axis = 0> (s, two)
        target = Concat <axis = 0> (minus_one, last)
        y = Reshape (x, target) })"),
            R"(step (float[2,3,4] x) => (float[6,4] y)
<
  int64[2] target = {-1, 4}
>
{
  y = Reshape (x, target)
}
)");
}

TEST(Specialize, LargeResultsStayNodes) {
  const std::string text = std::string(kHeader) + R"(
      g (float[8,8] x) => (float[8,8] y) <int64[2] shape = {8, 8}> {
        ones = ConstantOfShape <value = float[1] {1}> (shape) y = Add (x, ones) })";
  EXPECT_THAT(Body(text), Not(HasSubstr("ConstantOfShape")));
  SpecializeOptions small;
  small.max_constant_elements = 63;
  EXPECT_THAT(Body(text, small), HasSubstr("ConstantOfShape"));
}

TEST(Specialize, IdentityIsAnotherNameForTheSameValue) {
  const std::string text = std::string(kHeader) + R"(
      g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { u = Identity (w) t = Mul (x, w) y = Add (t, u) })";
  EXPECT_THAT(Body(text, States({"w"})), AllOf(HasSubstr("y = Add (t, w)"), Not(HasSubstr("Identity"))));
  SpecializeOptions options = States({"w"});
  options.outputs = {"y", "u"};
  EXPECT_THAT(Body(text, options), AllOf(HasSubstr("u = Identity (w)"), HasSubstr("y = Add (t, u)")));
}

TEST(Specialize, UntiedNamesAreStatesOfTheirOwn) {
  StatusOr<OnnxModel> model = OnnxModel::ParseText(
      std::string(kHeader) +
          "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { u = Identity (w) t = Mul (x, w) y = Add (t, u) }",
      "", "m");
  ASSERT_TRUE(model.ok());
  model->Untie();
  const StatusOr<Graph> graph = Specialize(*model, States({"w", "u"}));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->states().size(), 2u);
}

TEST(Specialize, InitializersListedAsInputsAreInitializers) {
  EXPECT_THAT(Body("<ir_version: 3, opset_import: [\"\" : 9]> g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y "
                   "= Mul (x, w) }"),
              HasSubstr("step (float[2] x) => (float[2] y)\n<\n  float[2] w = {1.0, 2.0}"));
}

TEST(Specialize, BranchesThatAreKnownAreTaken) {
  const std::string text = R"(
      g (float[2] x) => (float[2] y) <bool flag = {FLAG}, float[2] k = {5, 6}> {
        y = If (flag) <
          then_branch = a () => (float[2] r) { m = Mul (x, k) r = Neg (m) },
          else_branch = b () => (float[2] q) { q = com.example.Unknown (x) }> })";
  const auto with_flag = [&](const char* flag) {
    std::string made = std::string(kHeader) + text;
    return Body(made.replace(made.find("FLAG"), 4, flag));
  };
  EXPECT_THAT(with_flag("1"), AllOf(HasSubstr("\"y/m\" = Mul (x, k)"), HasSubstr("y = Neg (\"y/m\")")));
  EXPECT_THAT(with_flag("0"), HasSubstr("com.example"));
}

TEST(Specialize, BranchesThatDependOnDataAreRefused) {
  EXPECT_THAT(Body(std::string(kHeader) + R"(
      g (float[2] x, bool flag) => (float[2] y) {
        [choose] y = If (flag) <then_branch = a () => (float[2] r) { r = Neg (x) },
                                else_branch = b () => (float[2] r) { r = Relu (x) }> })"),
              HasSubstr("choose (If, opset 17): which branch is taken depends on data"));
}

TEST(Specialize, FunctionsAreInlinedWithTheirAttributes) {
  EXPECT_EQ(Body(R"(
      <ir_version: 8, opset_import: ["" : 17, "local" : 1]>
      g (float[2] x) => (float[2] y, float[2] z) {
        [one] y = local.Scaled (x)
        [two] z = local.Scaled <factor = 3.0> (y)
      }
      <opset_import: ["" : 17, "local" : 1], domain: "local">
      Scaled <factor: float = 2.0> (a) => (b) { k = Constant <value_float = @factor> () b = local.Times (a, k) }
      <opset_import: ["" : 17], domain: "local">
      Times (a, k) => (b) { b = Mul (a, k) })"),
            R"(step (float[2] x) => (float[2] y, float[2] z)
<
  float "one/k" = {2.0},
  float "two/k" = {3.0}
>
{
  y = Mul (x, "one/k")
  z = Mul (y, "two/k")
}
)");
}

TEST(Specialize, FunctionsMustNotCallThemselves) {
  EXPECT_THAT(Body(R"(
      <ir_version: 8, opset_import: ["" : 17, "local" : 1]>
      g (float[2] x) => (float[2] y) { y = local.F (x) }
      <opset_import: ["local" : 1], domain: "local"> F (a) => (b) { b = local.F (a) })"),
              HasSubstr("nests too deep"));
}

TEST(Specialize, FunctionsOfTheStandardAreInlinedWhereNoRuleExists) {
  EXPECT_THAT(Body(R"(<ir_version: 10, opset_import: ["" : 23]>
      g (float[2,4] x) => (float[2,4] y) <float[4] s = {1, 1, 1, 1}> { y = MeanVarianceNormalization <axes = [1]> (x) })"),
              AllOf(HasSubstr("ReduceMean"), Not(HasSubstr("MeanVarianceNormalization"))));
}

TEST(Specialize, SequencesDisappear) {
  EXPECT_EQ(Body(std::string(kHeader) + R"(
      g (float[4,3] x) => (float[3,4] y, int64 n) <int64 two = {2}, int64 zero = {0}, int64 last = {-1}> {
        parts = SplitToSequence <axis = 0> (x, two)
        a = SequenceAt (parts, zero)
        b = SequenceAt (parts, last)
        n = SequenceLength (parts)
        list = SequenceConstruct (a, b)
        more = SequenceInsert (list, b, zero)
        less = SequenceErase (more, zero)
        joined = ConcatFromSequence <axis = 0> (less)
        y = Transpose (joined) })"),
            R"(step (float[4,3] x) => (float[3,4] y, int64 n)
<
  int64[2] parts_sizes = {2, 2},
  int64 n = {2}
>
{
  a, b = Split <axis = 0> (x, parts_sizes)
  joined = Concat <axis = 0> (a, b)
  y = Transpose (joined)
}
)");
}

TEST(Specialize, SequencesOfRowsDropTheirAxis) {
  EXPECT_THAT(Body(std::string(kHeader) + R"(
      g (float[2,3] x) => (float[2,3] y) <int64 one = {1}> {
        rows = SplitToSequence <keepdims = 0> (x)
        y = ConcatFromSequence <axis = 0, new_axis = 1> (rows) })"),
              AllOf(HasSubstr("Squeeze"), HasSubstr("Unsqueeze"), HasSubstr("y = Concat")));
}

TEST(Specialize, SequencesMustBeKnown) {
  const std::string head =
      std::string(kHeader) + "g (float[4] x, int64 i) => (float[2] y) <int64 two = {2}, int64 five = {5}> {";
  EXPECT_THAT(Body(head + "s = SplitToSequence (x, two) y = SequenceAt (s, i) }"), HasSubstr("depends on data"));
  EXPECT_THAT(Body(head + "s = SplitToSequence (x, i) y = SequenceAt (s, two) }"), HasSubstr("depends on data"));
  EXPECT_THAT(Body(head + "s = SplitToSequence (x, two) y = SequenceAt (s, five) }"),
              HasSubstr("position 5 of a sequence of 2"));
  EXPECT_THAT(Body(head + "s = SplitToSequence (x, two) y = Relu (s) }"), HasSubstr("sequences of tensors"));
  EXPECT_THAT(Body(head + "y = SplitToSequence (x, two) }"), HasSubstr("cannot be an output"));
}

TEST(Specialize, CastsThatChangeNothingGo) {
  EXPECT_EQ(Body(std::string(kHeader) + R"(
      g (float[2] x, int64[2] i) => (float[2] y) {
        a = Cast <to = 1> (x) b = CastLike (i, a) y = Add (a, b) })"),
            R"(step (float[2] x, int64[2] i) => (float[2] y)
{
  b = Cast <to = 1> (i)
  y = Add (x, b)
}
)");
}

TEST(Specialize, DoubleReachesEverything) {
  SpecializeOptions options = States({"w"});
  options.widen_to_double = true;
  options.inputs["x"] = {DType::kFloat, {2}};
  options.inputs["h"] = {DType::kDouble, {2}};
  const std::string body = Body(std::string(kHeader) + R"(
      g (float[2] x, float16[2] h, int64[2] i) => (float[2] y) <float[2] w = {1, 2}, float[2] k = {0.5, 1}, int64[1] n = {2}> {
        a = Mul (x, w)
        b = Add (a, k)
        c = Cast <to = 1> (i)
        d = Cast <to = 1> (h)
        e = RandomNormalLike <dtype = 1> (x)
        f = ConstantOfShape (n)
        y = Sum (b, c, d, e, f) })",
                                options);
  EXPECT_THAT(body, Not(HasSubstr("float")));
  EXPECT_THAT(body, AllOf(HasSubstr("double[2] w,"), HasSubstr("double[2] k = {0.5, 1.0}"),
                          HasSubstr("Cast <to = 11> (i)"), HasSubstr("dtype = 11"), HasSubstr("double[2] h")));
}

TEST(Specialize, AllUnusableNodesAreListed) {
  const Status status = Read(std::string(kHeader) + R"(
      g (float[2] x) => (float[2] y) {
        [first] a = com.example.A (x)
        [second] b = NonZero (x)
        c = Cast <to = 1> (b)
        d = Relu (a)
        [third] e = Loop (, , x) <body = l (int64 i, bool c, float[2] s) => (bool c2, float[2] s2) { c2 = Identity (c) s2 = Neg (s) }>
        y = Sum (c, d, e) })")
                            .status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidModel);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("m.onnxtxt: 3 nodes cannot be used"), HasSubstr("first (com.example.A"),
                    HasSubstr("second (NonZero"), HasSubstr("depends on data"), HasSubstr("third (Loop")));
}

TEST(Specialize, BrokenGraphsAreRefused) {
  const auto graph = [](const std::string& nodes) {
    return Body(std::string(kHeader) + "g (float[2] x) => (float[2] y) {" + nodes + "}");
  };
  EXPECT_THAT(graph("y = Add (x, later) later = Neg (x)"), HasSubstr("'later' is read before anything defines it"));
  EXPECT_THAT(graph("y = Neg (x) z = Neg (x)"), HasSubstr("y = Neg"));
  EXPECT_THAT(graph("a = Neg (x) b = Neg (x) a = Neg (b) y = Relu (a)"), HasSubstr("'a' is written twice"));
  EXPECT_THAT(graph("y, z = Neg (x)"), HasSubstr("Neg"));
  EXPECT_THAT(graph("y = MatMul (x)"), HasSubstr("y (MatMul, opset 17)"));
  EXPECT_THAT(Body("<ir_version: 8, opset_import: [\"\" : 6]> g (float[2] x) => (float[2] y) { y = Neg (x) }"),
              HasSubstr("opset 6 is not supported"));
  EXPECT_THAT(Body("<ir_version: 8, opset_import: [\"\" : 99]> g (float[2] x) => (float[2] y) { y = Neg (x) }"),
              HasSubstr("opset 99 is not supported"));
  EXPECT_THAT(
      Body("<ir_version: 8, opset_import: [\"ai.onnx.ml\" : 3]> g (float[2] x) => (float[2] y) { y = Neg (x) }"),
      HasSubstr("does not import the domain ''"));
}

TEST(Specialize, ShapesThatOverflowAreRefused) {
  const std::string big = "4611686018427387904";
  EXPECT_THAT(Body(std::string(kHeader) + "g (float[" + big + "," + big + "] x) => (float[2] y) { y = Neg (x) }"),
              HasSubstr("too large"));
  EXPECT_THAT(Body(std::string(kHeader) + "g () => (float[2] y) <int64[2] s = {" + big + ", " + big +
                   "}> { y = ConstantOfShape (s) }"),
              HasSubstr("too large"));
}

TEST(Specialize, RewrittenGraphsAreRefused) {
  EXPECT_THAT(Body("<ir_version: 8, opset_import: [\"\" : 17, \"onnxtrain\" : 1]> g (float[2] x) => (float[2] y) { y = "
                   "onnxtrain.AllReduce (x) }"),
              HasSubstr("rewritten already"));
}

TEST(Specialize, FeedsMustExist) {
  SpecializeOptions options;
  options.inputs["pixel"] = {DType::kFloat, {2}};
  const Status status =
      Read(std::string(kHeader) + "g (float[2] pixels) => (float[2] y) { y = Neg (pixels) }", options).status();
  EXPECT_EQ(status.code(), StatusCode::kUsage);
  EXPECT_THAT(status.message(), HasSubstr("no input 'pixel', did you mean 'pixels'?"));
}

TEST(Specialize, NamesOfTheFileWinOverInventedOnes) {
  EXPECT_THAT(Body(R"(<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
      g (float[2] x) => (float[2] y) { [a] t = local.F (x) "a/k" = Neg (t) y = Abs ("a/k") }
      <opset_import: ["" : 17], domain: "local"> F (v) => (b) { k = Relu (v) b = Exp (k) })"),
              AllOf(HasSubstr("\"a/k_inner\" = Relu (x)"), HasSubstr("\"a/k\" = Neg (t)")));
}

}  // namespace
}  // namespace onnxtrain
