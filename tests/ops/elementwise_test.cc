// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graph/op_registry.h"
#include "runtime/status_word.h"
#include "tests/support/gradient_check.h"
#include "tests/support/lifted_op.h"
#include "tests/support/naive_reference.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

using Function = std::function<double(double, double)>;

// Same shape, scalars, row and column broadcasts, both ways at once, empty, long rows.
const std::vector<std::pair<Shape, Shape>> kShapePairs = {{{}, {}},
                                                          {{3}, {}},
                                                          {{}, {5}},
                                                          {{7, 33}, {33}},
                                                          {{7, 33}, {7, 1}},
                                                          {{1, 5}, {4, 1}},
                                                          {{2, 3, 5}, {3, 1}},
                                                          {{4, 1, 3}, {2, 1}},
                                                          {{0, 3}, {1, 3}},
                                                          {{2, 9001}, {9001}},
                                                          {{2, 9001}, {2, 1}},
                                                          {{70001}, {70001}},
                                                          {{2, 3, 4, 5}, {2, 1, 4, 1}},
                                                          {{1, 1}, {1}}};

Tensor Expected(DType dtype, const Tensor& a, const Tensor& b, const Function& function) {
  return FromIndices(dtype, BroadcastShape(a.shape(), b.shape()),
                     [&](const Index& index) { return function(At(a, index), At(b, index)); });
}

void ExpectBinary(const std::string& op, DType dtype, DType result, const Function& function, double low, double high,
                  double tolerance, const Attributes& attributes = {}) {
  uint64_t seed = 100;
  for (const auto& [a_shape, b_shape] : kShapePairs) {
    SCOPED_TRACE(op + " " + ToString(TensorType{dtype, a_shape}) + ToString(b_shape));
    const Tensor a = RandomTensor(dtype, a_shape, ++seed, low, high);
    const Tensor b = RandomTensor(dtype, b_shape, ++seed, low, high);
    ExpectNear(RunOp(op, {Fed(a), Fed(b)}, attributes)[0], Expected(result, a, b, function), tolerance);
  }
}

TEST(ElementwiseTest, ArithmeticBroadcasts) {
  for (DType dtype : {DType::kFloat, DType::kDouble}) {
    const double tolerance = dtype == DType::kFloat ? 2e-7 : 1e-15;
    ExpectBinary(
        "Add", dtype, dtype, [](double a, double b) { return a + b; }, -2, 2, tolerance);
    ExpectBinary(
        "Sub", dtype, dtype, [](double a, double b) { return a - b; }, -2, 2, tolerance);
    ExpectBinary(
        "Mul", dtype, dtype, [](double a, double b) { return a * b; }, -2, 2, tolerance);
    ExpectBinary(
        "Div", dtype, dtype, [](double a, double b) { return a / b; }, 1, 2, tolerance);
    ExpectBinary(
        "Max", dtype, dtype, [](double a, double b) { return std::max(a, b); }, -2, 2, 0);
    ExpectBinary(
        "Min", dtype, dtype, [](double a, double b) { return std::min(a, b); }, -2, 2, 0);
    ExpectBinary(
        "Sum", dtype, dtype, [](double a, double b) { return a + b; }, -2, 2, tolerance);
    ExpectBinary(
        "Mean", dtype, dtype, [](double a, double b) { return (a + b) / 2; }, -2, 2, tolerance);
    ExpectBinary(
        "Pow", dtype, dtype, [](double a, double b) { return std::pow(a, b); }, 0.5, 2, 4 * tolerance);
    ExpectBinary("Mod", dtype, dtype, [](double a, double b) { return std::fmod(a, b); }, 0.5, 9, 2e-6,
                 {{"fmod", int64_t{1}}});
  }
}

TEST(ElementwiseTest, IntegerArithmetic) {
  const auto floor_mod = [](double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); };
  for (DType dtype : {DType::kInt32, DType::kInt64, DType::kInt8}) {
    ExpectBinary(
        "Add", dtype, dtype, [](double a, double b) { return a + b; }, -9, 9, 0);
    ExpectBinary(
        "Sub", dtype, dtype, [](double a, double b) { return a - b; }, -9, 9, 0);
    ExpectBinary(
        "Mul", dtype, dtype, [](double a, double b) { return a * b; }, -9, 9, 0);
    ExpectBinary(
        "Div", dtype, dtype, [](double a, double b) { return std::trunc(a / b); }, 1, 60, 0);
    ExpectBinary("Mod", dtype, dtype, floor_mod, -9, -1, 0);
    ExpectBinary(
        "Max", dtype, dtype, [](double a, double b) { return std::max(a, b); }, -9, 9, 0);
  }
  ExpectBinary(
      "Div", DType::kUint8, DType::kUint8, [](double a, double b) { return std::trunc(a / b); }, 1, 200, 0);
}

TEST(ElementwiseTest, IntegerModAndDivOfMixedSigns) {
  const Tensor a = Tensor::Ints({7, -7, 7, -7});
  const Tensor b = Tensor::Ints({3, 3, -3, -3});
  ExpectIdentical(RunOp("Mod", {Fed(a), Fed(b)})[0], Tensor::Ints({1, 2, -2, -1}));
  ExpectIdentical(RunOp("Mod", {Fed(a), Fed(b)}, {{"fmod", int64_t{1}}})[0], Tensor::Ints({1, -1, 1, -1}));
  ExpectIdentical(RunOp("Div", {Fed(a), Fed(b)})[0], Tensor::Ints({2, -2, -2, 2}));
}

TEST(ElementwiseTest, IntegerDivisionByZeroSetsTheStatusWord) {
  Graph graph(OpRegistry::Default());
  const std::vector<OpInput> inputs{Fed(Tensor::Ints({5, std::numeric_limits<int64_t>::min()})),
                                    Fed(Tensor::Ints({0, -1}))};
  ASSERT_TRUE(AddOp(graph, "Div", inputs).ok());
  StatusOr<OpRunnerResult> result = RunGraph(graph, FeedsOf(inputs));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(FaultOf(result->status_word), DeviceFault::kNonFinite);
  EXPECT_EQ(NodeIndexOf(result->status_word), 0);
  ExpectIdentical(result->fetches.at("y0"), Tensor::Ints({0, std::numeric_limits<int64_t>::min()}));
}

TEST(ElementwiseTest, ComparisonsAndLogic) {
  for (DType dtype : {DType::kFloat, DType::kInt64}) {
    const DType result = DType::kBool;
    ExpectBinary(
        "Equal", dtype, result, [](double a, double b) { return a == b; }, 0, 2, 0);
    ExpectBinary(
        "Less", dtype, result, [](double a, double b) { return a < b; }, 0, 2, 0);
    ExpectBinary(
        "LessOrEqual", dtype, result, [](double a, double b) { return a <= b; }, 0, 2, 0);
    ExpectBinary(
        "Greater", dtype, result, [](double a, double b) { return a > b; }, 0, 2, 0);
    ExpectBinary(
        "GreaterOrEqual", dtype, result, [](double a, double b) { return a >= b; }, 0, 2, 0);
  }
  const DType b = DType::kBool;
  ExpectBinary(
      "And", b, b, [](double x, double y) { return x != 0 && y != 0; }, 0, 1, 0);
  ExpectBinary(
      "Or", b, b, [](double x, double y) { return x != 0 || y != 0; }, 0, 1, 0);
  ExpectBinary(
      "Xor", b, b, [](double x, double y) { return x != y; }, 0, 1, 0);
  ExpectBinary(
      "Equal", b, b, [](double x, double y) { return x == y; }, 0, 1, 0);
}

TEST(ElementwiseTest, BitwiseAndShift) {
  const Tensor a = Tensor::FromVector<uint8_t>({3}, {0b1100, 0b1010, 255});
  const Tensor b = Tensor::FromVector<uint8_t>({3}, {0b1010, 2, 9});
  const auto run = [&](const char* op, Attributes attributes = {}) {
    return RunOp(op, {Fed(a), Fed(b)}, std::move(attributes))[0];
  };
  ExpectIdentical(run("BitwiseAnd"), Tensor::FromVector<uint8_t>({3}, {0b1000, 2, 9}));
  ExpectIdentical(run("BitwiseOr"), Tensor::FromVector<uint8_t>({3}, {0b1110, 0b1010, 255}));
  ExpectIdentical(run("BitwiseXor"), Tensor::FromVector<uint8_t>({3}, {0b0110, 0b1000, 246}));
  ExpectIdentical(run("BitShift", {{"direction", std::string("LEFT")}}), Tensor::FromVector<uint8_t>({3}, {0, 40, 0}));
  ExpectIdentical(run("BitShift", {{"direction", std::string("RIGHT")}}), Tensor::FromVector<uint8_t>({3}, {0, 2, 0}));
  ExpectIdentical(RunOp("BitwiseNot", {Fed(a)})[0], Tensor::FromVector<uint8_t>({3}, {243, 245, 0}));
}

TEST(ElementwiseTest, VariadicFoldsEveryOperand) {
  const Tensor a = RandomTensor(DType::kFloat, {2, 3}, 1), b = RandomTensor(DType::kFloat, {3}, 2),
               c = RandomTensor(DType::kFloat, {2, 1}, 3), d = RandomTensor(DType::kFloat, {2, 3}, 4);
  const auto expect = [&](const char* op, const std::function<double(double, double, double, double)>& function) {
    const Tensor expected = FromIndices(
        DType::kFloat, {2, 3}, [&](const Index& i) { return function(At(a, i), At(b, i), At(c, i), At(d, i)); });
    ExpectNear(RunOp(op, {Fed(a), Fed(b), Fed(c), Fed(d)})[0], expected, 3e-7);
  };
  expect("Max", [](double w, double x, double y, double z) { return std::max({w, x, y, z}); });
  expect("Min", [](double w, double x, double y, double z) { return std::min({w, x, y, z}); });
  expect("Sum", [](double w, double x, double y, double z) { return w + x + y + z; });
  expect("Mean", [](double w, double x, double y, double z) { return (w + x + y + z) / 4; });
  ExpectIdentical(RunOp("Max", {Fed(a)})[0], a);
  ExpectIdentical(RunOp("Mean", {Fed(a)})[0], a);
}

TEST(ElementwiseTest, NaNWinsMaxAndMin) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor a = Tensor::FromVector<float>({3}, {nan, 1, 2});
  const Tensor b = Tensor::FromVector<float>({3}, {1, nan, 1});
  ExpectNear(RunOp("Max", {Fed(a), Fed(b)})[0], Tensor::FromVector<float>({3}, {nan, nan, 2}), 0);
  ExpectNear(RunOp("Min", {Fed(a), Fed(b)})[0], Tensor::FromVector<float>({3}, {nan, nan, 1}), 0);
}

TEST(ElementwiseTest, WhereSelectsBits) {
  for (DType dtype : {DType::kFloat, DType::kDouble, DType::kInt64, DType::kUint8, DType::kBool}) {
    for (const auto& [a_shape, b_shape] : kShapePairs) {
      for (const Shape& c_shape : {Shape{}, BroadcastShape(a_shape, b_shape), a_shape}) {
        const Tensor c = RandomTensor(DType::kBool, c_shape, 8);
        const Tensor a = RandomTensor(dtype, a_shape, 9), b = RandomTensor(dtype, b_shape, 10);
        const Tensor expected = FromIndices(dtype, BroadcastShape(a_shape, b_shape),
                                            [&](const Index& i) { return At(c, i) != 0 ? At(a, i) : At(b, i); });
        ExpectIdentical(RunOp("Where", {Fed(c), Fed(a), Fed(b)})[0], expected);
      }
    }
  }
}

TEST(ElementwiseTest, CastConvertsAllPairs) {
  const std::vector<DType> types{DType::kFloat,  DType::kDouble, DType::kFloat16, DType::kBfloat16, DType::kInt8,
                                 DType::kInt16,  DType::kInt32,  DType::kInt64,   DType::kUint8,    DType::kUint16,
                                 DType::kUint32, DType::kUint64, DType::kBool};
  for (DType from : types) {
    for (DType to : types) {
      const Tensor x = RandomTensor(DType::kFloat, {1031}, 3, 0, 100).CastTo(from);
      ExpectIdentical(RunOp("Cast", {Fed(x)}, {{"to", static_cast<int64_t>(to)}})[0], x.CastTo(to));
    }
  }
}

TEST(ElementwiseTest, FunctionsOfOneNumber) {
  struct Case {
    const char* op;
    double (*function)(double);
    double low, high;
  };
  const Case cases[] = {{"Exp", std::exp, -3, 3},
                        {"Log", std::log, 0.1, 9},
                        {"Sqrt", std::sqrt, 0, 9},
                        {"Reciprocal", [](double x) { return 1 / x; }, 1, 4},
                        {"Neg", [](double x) { return -x; }, -2, 2},
                        {"Abs", [](double x) { return std::abs(x); }, -2, 2},
                        {"Sign", [](double x) { return static_cast<double>((x > 0) - (x < 0)); }, -2, 2},
                        {"Floor", std::floor, -9, 9},
                        {"Ceil", std::ceil, -9, 9},
                        {"Round", std::nearbyint, -9, 9},
                        {"Sin", std::sin, -9, 9},
                        {"Cos", std::cos, -9, 9},
                        {"Tan", std::tan, -1, 1},
                        {"Asin", std::asin, -0.9, 0.9},
                        {"Acos", std::acos, -0.9, 0.9},
                        {"Atan", std::atan, -9, 9},
                        {"Sinh", std::sinh, -2, 2},
                        {"Cosh", std::cosh, -2, 2},
                        {"Asinh", std::asinh, -9, 9},
                        {"Acosh", std::acosh, 1.1, 9},
                        {"Atanh", std::atanh, -0.9, 0.9}};
  for (const Case& test : cases) {
    SCOPED_TRACE(test.op);
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 43}, Shape{20001}}) {
      for (DType dtype : {DType::kFloat, DType::kDouble}) {
        const Tensor x = RandomTensor(dtype, shape, 12, test.low, test.high);
        const Tensor expected = FromIndices(dtype, shape, [&](const Index& i) { return test.function(At(x, i)); });
        ExpectNear(RunOp(test.op, {Fed(x)})[0], expected, dtype == DType::kFloat ? 5e-7 : 1e-14);
      }
    }
    if (std::string_view("Floor Ceil Round Sign").find(test.op) != std::string_view::npos) continue;
    ExpectOpGradient(test.op, {Fed(RandomTensor(DType::kDouble, {13}, 14, test.low + 0.05, test.high))});
  }
}

TEST(ElementwiseTest, RoundGoesToEven) {
  const Tensor x = Tensor::FromVector<float>({5}, {0.5f, 1.5f, -2.5f, 2.4f, -0.5f});
  ExpectNear(RunOp("Round", {Fed(x)})[0], Tensor::FromVector<float>({5}, {0, 2, -2, 2, -0.0f}), 0);
}

TEST(ElementwiseTest, IntegersHaveSigns) {
  const Tensor x = Tensor::Ints({-3, 0, 7, std::numeric_limits<int64_t>::min()});
  ExpectIdentical(RunOp("Neg", {Fed(x)})[0], Tensor::Ints({3, 0, -7, std::numeric_limits<int64_t>::min()}));
  ExpectIdentical(RunOp("Abs", {Fed(x)})[0], Tensor::Ints({3, 0, 7, std::numeric_limits<int64_t>::min()}));
  ExpectIdentical(RunOp("Sign", {Fed(x)})[0], Tensor::Ints({-1, 0, 1, -1}));
}

TEST(ElementwiseTest, FindsNaNAndInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::FromVector<float>({4}, {nan, infinity, -infinity, 1});
  const auto bools = [](std::vector<uint8_t> values) {
    return Tensor::FromVector<uint8_t>({4}, values).CastTo(DType::kBool);
  };
  ExpectIdentical(RunOp("IsNaN", {Fed(x)})[0], bools({1, 0, 0, 0}));
  ExpectIdentical(RunOp("IsInf", {Fed(x)})[0], bools({0, 1, 1, 0}));
  ExpectIdentical(RunOp("IsInf", {Fed(x)}, {{"detect_negative", int64_t{0}}})[0], bools({0, 1, 0, 0}));
  ExpectIdentical(RunOp("Not", {Fed(bools({1, 0, 0, 1}))})[0], bools({0, 1, 1, 0}));
}

TEST(ElementwiseTest, BinaryGradientsOverEveryBroadcast) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Pow"}) {
    uint64_t seed = 40;
    for (const auto& [a_shape, b_shape] : kShapePairs) {
      if (ElementsOf(BroadcastShape(a_shape, b_shape)) > 300) continue;
      SCOPED_TRACE(ToString(a_shape) + ToString(b_shape));
      ExpectOpGradient(op, {Fed(RandomTensor(DType::kDouble, a_shape, ++seed, 0.5, 3)),
                            Fed(RandomTensor(DType::kDouble, b_shape, ++seed, 0.5, 3))});
    }
  }
  ExpectOpGradient(
      "Mod", {Fed(RandomTensor(DType::kDouble, {3, 4}, 7, 3, 9)), Fed(RandomTensor(DType::kDouble, {4}, 8, 1, 2))},
      {{"fmod", int64_t{1}}});
}

TEST(ElementwiseTest, VariadicGradients) {
  for (const char* op : {"Max", "Min", "Sum", "Mean"}) {
    ExpectOpGradient(op, {Fed(RandomTensor(DType::kDouble, {2, 3}, 1)), Fed(RandomTensor(DType::kDouble, {3}, 2)),
                          Fed(RandomTensor(DType::kDouble, {2, 1}, 3))});
    ExpectOpGradient(op, {Fed(RandomTensor(DType::kDouble, {2, 3}, 1))});
  }
}

TEST(ElementwiseTest, WhereGradient) {
  const Tensor c = RandomTensor(DType::kBool, {2, 3, 4}, 5);
  for (const Shape& a : {Shape{2, 3, 4}, Shape{4}, Shape{}}) {
    for (const Shape& b : {Shape{2, 3, 4}, Shape{3, 1}}) {
      ExpectOpGradient("Where",
                       {Fed(c), Fed(RandomTensor(DType::kDouble, a, 6)), Fed(RandomTensor(DType::kDouble, b, 7))});
    }
  }
}

TEST(ElementwiseTest, WhereGradientIgnoresWhatWasNotSelected) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor c = Tensor::FromVector<uint8_t>({2}, {1, 0}).CastTo(DType::kBool);
  const Tensor values = Tensor::FromVector<double>({2}, {1, 2});
  const std::vector<Tensor> gradients =
      OpGradients("Where", {Fed(c), Fed(values), Fed(values)}, Tensor::FromVector<double>({2}, {5, nan}));
  ExpectNear(gradients[1], Tensor::FromVector<double>({2}, {5, 0}), 0);
  ExpectNear(gradients[2], Tensor::FromVector<double>({2}, {0, nan}), 0);
}

TEST(ElementwiseTest, TiesShareTheGradient) {
  const Tensor a = Tensor::FromVector<double>({3}, {1, 2, 3}), b = Tensor::FromVector<double>({3}, {1, 2, 1}),
               c = Tensor::FromVector<double>({3}, {1, 0, 0}), one = Tensor::FromVector<double>({3}, {6, 6, 6});
  const std::vector<Tensor> gradients = OpGradients("Max", {Fed(a), Fed(b), Fed(c)}, one);
  ExpectNear(gradients[0], Tensor::FromVector<double>({3}, {2, 3, 6}), 0);
  ExpectNear(gradients[1], Tensor::FromVector<double>({3}, {2, 3, 0}), 0);
  ExpectNear(gradients[2], Tensor::FromVector<double>({3}, {2, 0, 0}), 0);
}

TEST(ElementwiseTest, PowGradientAtZeroAndWithConstantExponents) {
  const Tensor x = Tensor::FromVector<double>({3}, {0, -1.5, 2});
  const Tensor one = Tensor::FromVector<double>({3}, {1, 1, 1});
  const auto gradient = [&](double exponent) {
    return OpGradients("Pow", {Fed(x), Constant(Tensor::Scalar(exponent))}, one)[0];
  };
  ExpectNear(gradient(0), Tensor::FromVector<double>({3}, {0, 0, 0}), 0);
  ExpectNear(gradient(1), one, 0);
  ExpectNear(gradient(2), Tensor::FromVector<double>({3}, {0, -3, 4}), 1e-15);
  ExpectNear(gradient(3), Tensor::FromVector<double>({3}, {0, 6.75, 12}), 1e-15);
  ExpectNear(gradient(4), Tensor::FromVector<double>({3}, {0, -13.5, 32}), 1e-14);
  const std::vector<Tensor> both = OpGradients("Pow", {Fed(x), Fed(Tensor::FromVector<double>({3}, {2, 2, 2}))}, one);
  EXPECT_EQ(both[1].DoubleAt(0), 0);
  ExpectOpGradient("Pow", {Fed(RandomTensor(DType::kDouble, {5}, 3, 0.5, 2)), Constant(Tensor::Scalar(0.5))});
  ExpectOpGradient("Pow", {Fed(RandomTensor(DType::kDouble, {5}, 3, 0.5, 2)), Fed(Tensor::Scalar(int64_t{3}))});
}

TEST(ElementwiseTest, PowOfMixedTypes) {
  const Tensor x = Tensor::FromVector<float>({3}, {1.5f, -2, 3});
  ExpectNear(RunOp("Pow", {Fed(x), Fed(Tensor::Scalar(int64_t{3}))})[0],
             Tensor::FromVector<float>({3}, {3.375f, -8, 27}), 1e-6);
  ExpectIdentical(RunOp("Pow", {Fed(Tensor::Ints({2, -3, 5})), Fed(Tensor::Ints({10, 3, 0}))})[0],
                  Tensor::Ints({1024, -27, 1}));
  ExpectIdentical(RunOp("Pow", {Fed(Tensor::Ints({4, 9})), Fed(Tensor::Scalar(0.5f))})[0], Tensor::Ints({2, 3}));
}

TEST(ElementwiseTest, CastGradientReturnsToTheInputsType) {
  Graph graph(OpRegistry::Default());
  Value* x = graph.AddInput("x", {DType::kDouble, {4}});
  GraphBuilder build(graph, nullptr, "test");
  graph.AddOutput(build.Cast(build.Mul(build.Cast(x, DType::kFloat), build.Scalar(3, DType::kFloat)), DType::kDouble));
  ASSERT_TRUE(build.ok()) << build.status().message();
  const NamedTensors feeds{{"x", RandomTensor(DType::kDouble, {4}, 2)}};
  const Tensor weight = Tensor::FromVector<double>({4}, {1, 2, 3, 4});
  StatusOr<NamedTensors> gradients = GradientsOf(graph, feeds, {{graph.outputs()[0]->name(), weight}}, {"x"});
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  ExpectNear(gradients->at("x"), Tensor::FromVector<double>({4}, {3, 6, 9, 12}), 0);
}

TEST(ElementwiseTest, ClipLimitsAndPassesStrictlyInside) {
  const Tensor x = Tensor::FromVector<double>({5}, {-2, -1, 0, 1, 2});
  const Tensor one = Tensor::FromVector<double>({5}, {1, 1, 1, 1, 1});
  const std::vector<OpInput> both{Fed(x), Constant(Tensor::Scalar(-1.0)), Constant(Tensor::Scalar(1.0))};
  const std::vector<OpInput> lower{Fed(x), Constant(Tensor::Scalar(-1.0))};
  const std::vector<OpInput> upper{Fed(x), Omitted(), Constant(Tensor::Scalar(1.0))};
  ExpectIdentical(RunOp("Clip", both)[0], Tensor::FromVector<double>({5}, {-1, -1, 0, 1, 1}));
  ExpectIdentical(RunOp("Clip", lower)[0], Tensor::FromVector<double>({5}, {-1, -1, 0, 1, 2}));
  ExpectIdentical(RunOp("Clip", upper)[0], Tensor::FromVector<double>({5}, {-2, -1, 0, 1, 1}));
  ExpectIdentical(RunOp("Clip", {Fed(x)})[0], x);
  ExpectIdentical(OpGradients("Clip", both, one)[0], Tensor::FromVector<double>({5}, {0, 0, 1, 0, 0}));
  ExpectIdentical(OpGradients("Clip", lower, one)[0], Tensor::FromVector<double>({5}, {0, 0, 1, 1, 1}));
  ExpectIdentical(OpGradients("Clip", upper, one)[0], Tensor::FromVector<double>({5}, {1, 1, 1, 0, 0}));
  ExpectIdentical(OpGradients("Clip", {Fed(x)}, one)[0], one);
  ExpectIdentical(RunOp("Clip", {Fed(Tensor::Ints({-5, 0, 9})), Constant(Tensor::Scalar(int64_t{-1})),
                                 Constant(Tensor::Scalar(int64_t{3}))})[0],
                  Tensor::Ints({-1, 0, 3}));
}

TEST(ElementwiseTest, LiftsClipBeforeOpset11AndCastLike) {
  const Tensor x = Tensor::FromVector<float>({3}, {-2, 0.5f, 9});
  ExpectIdentical(RunLiftedOp("Clip", 6, {Fed(x)}, {{"min", -1.0f}, {"max", 6.0f}})[0],
                  Tensor::FromVector<float>({3}, {-1, 0.5f, 6}));
  ExpectIdentical(RunLiftedOp("Clip", 6, {Fed(x)}, {{"max", 6.0f}})[0], Tensor::FromVector<float>({3}, {-2, 0.5f, 6}));
  ExpectIdentical(RunLiftedOp("CastLike", 15, {Fed(x), Fed(Tensor::Ints({1}))})[0], Tensor::Ints({-2, 0, 9}));
}

}  // namespace
}  // namespace onnxtrain
