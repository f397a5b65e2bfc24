// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/parity_cases.h"

#include <cmath>

#include "tests/conformance/parity_inputs.h"

namespace onnxtrain {
namespace {

using Cases = std::vector<ParityCase>;

void AddUnary(Cases& cases) {
  for (const char* op : {"Celu", "Elu", "Erf", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Relu", "Selu",
                         "Sigmoid", "Softplus", "Softsign", "Swish", "Tanh", "ThresholdedRelu"}) {
    for (const Shape& shape : {Shape{0}, Shape{1}, Shape{7, 33}}) {
      cases.push_back({op, {Fed(Floats(shape, -4, 4))}, {}});
      cases.push_back({std::string("onnxtrain.") + op + "Grad", {Fed(Floats(shape, -4, 4)), Fed(Floats(shape))}, {}});
    }
  }
  cases.push_back({"Gelu", {Fed(Floats({257}))}, {{"approximate", "tanh"}}});
  cases.push_back({"onnxtrain.GeluGrad", {Fed(Floats({257})), Fed(Floats({257}))}, {{"approximate", "tanh"}}});
  for (const char* op :
       {"Exp", "Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Sin", "Cos", "Atan", "Sinh", "Cosh", "Asinh"}) {
    cases.push_back({op, {Fed(Floats({3, 91}))}, {}});
  }
  for (const char* op : {"Log", "Sqrt", "Reciprocal"}) cases.push_back({op, {Fed(Floats({77}, 0.1, 3))}, {}});
  for (const char* op : {"Asin", "Acos", "Atanh"}) cases.push_back({op, {Fed(Floats({77}, -0.9, 0.9))}, {}});
  cases.push_back({"Tan", {Fed(Floats({77}, -1, 1))}, {}});
  cases.push_back({"Acosh", {Fed(Floats({77}, 1.1, 4))}, {}});
  cases.push_back({"Not", {Fed(Bools({2, 51}))}, {}});
}

void AddElementwise(Cases& cases) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{5, 7}, {5, 7}},          {{5, 7}, {7}},    {{5, 1}, {1, 7}}, {{3, 4, 5}, {}},
      {{2, 1, 3, 1}, {5, 1, 3}}, {{0, 3}, {1, 3}}, {{1}, {1}}};
  for (const char* op : {"Add", "Sub", "Mul", "Max", "Min", "Div", "PRelu", "Pow"}) {
    const std::string name(op);
    for (const auto& [a, b] : shapes) {
      if (name == "PRelu" && (b == Shape{1, 7} || b == Shape{5, 1, 3})) continue;  // its slope is broadcast one way
      const double low = name == "Div" || name == "Pow" ? 0.5 : -2;
      cases.push_back({op, {Fed(Floats(a, low, 2)), Fed(Floats(b, low, 2))}, {}, 1, false, 4e-6});
      if (name == "Div" || name == "Pow") continue;
      for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kDouble}) {
        cases.push_back({op, {Fed(Of(dtype, a, -99, 99)), Fed(Of(dtype, b, -99, 99))}, {}});
      }
    }
  }
  for (const char* op : {"Sum", "Mean"}) {
    cases.push_back({op, {Fed(Floats({5, 7})), Fed(Floats({7})), Fed(Floats({5, 1}))}, {}});
    cases.push_back({op, {Fed(Floats({5, 7}))}, {}});
  }
  for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}) {
    for (const auto& [a, b] : shapes) {
      cases.push_back({op, {Fed(Floats(a)), Fed(Floats(b))}, {}});
      cases.push_back({op, {Fed(Longs(a, -2, 2)), Fed(Longs(b, -2, 2))}, {}});
    }
  }
  for (const char* op : {"And", "Or", "Xor"}) cases.push_back({op, {Fed(Bools({5, 7})), Fed(Bools({7}))}, {}});
  cases.push_back({"Equal", {Fed(Bools({5, 7})), Fed(Bools({5, 7}))}, {}});
  cases.push_back({"Where", {Fed(Bools({5, 1})), Fed(Floats({7})), Fed(Floats({5, 7}))}, {}});
  cases.push_back({"Where", {Fed(Bools({3})), Fed(Longs({3}, -9, 9)), Fed(Longs({1}, -9, 9))}, {}});
}

void AddClips(Cases& cases) {
  const auto bound = [](float value) { return Fed(Tensor::Scalar<float>(value)); };
  for (const auto& [lower, upper] : std::vector<std::pair<OpInput, OpInput>>{
           {bound(-0.5f), bound(0.75f)}, {Omitted(), bound(0.5f)}, {bound(0.25f), Omitted()}, {Omitted(), Omitted()}}) {
    cases.push_back({"Clip", {Fed(Floats({5, 33})), lower, upper}, {}});
    cases.push_back({"onnxtrain.ClipGrad", {Fed(Floats({5, 33})), Fed(Floats({5, 33})), lower, upper}, {}});
  }
  cases.push_back({"IsNaN", {Fed(Tensor::FromVector<float>({3}, {1, std::nanf(""), -2}))}, {}});
}

void AddRows(Cases& cases) {
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, int64_t>>{
           {{1}, 0}, {{5, 33}, -1}, {{33, 5}, 0}, {{2, 17, 3}, 1}, {{3, 1500}, -1}, {{0, 4}, 1}}) {
    for (const char* op : {"Softmax", "LogSoftmax"}) {
      cases.push_back({op, {Fed(Floats(shape, -6, 6))}, {{"axis", axis}}, 1, false, 4e-6});
      cases.push_back({std::string("onnxtrain.") + op + "Grad",
                       {Fed(Floats(shape)), Fed(Floats(shape, op[0] == 'S' ? 0 : -3, op[0] == 'S' ? 0.2 : 0))},
                       {{"axis", axis}},
                       1,
                       false,
                       2e-4});
    }
  }
  for (const auto& [rows, length] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {5, 33}, {130, 64}, {3, 1500}}) {
    const Shape x{rows, length}, parameter{length};
    cases.push_back(
        {"LayerNormalization", {Fed(Floats(x)), Fed(Floats(parameter)), Fed(Floats(parameter))}, {}, 1, false, 2e-5});
    cases.push_back({"RMSNormalization", {Fed(Floats(x)), Fed(Floats(parameter))}, {}, 1, false, 2e-5});
    for (const int64_t rms : {0, 1}) {
      cases.push_back({"onnxtrain.LayerNormalizationGrad",
                       {Fed(Floats(x)), Fed(Floats(x)), Fed(Floats(parameter))},
                       {{"axis", int64_t{-1}}, {"rms", rms}},
                       3,
                       false,
                       2e-4});
    }
  }
}

void AddProducts(Cases& cases) {
  const double loose = 2e-5;
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{1, 1}, {1, 1}},
                                                                 {{5, 7}, {7, 3}},
                                                                 {{7}, {7, 3}},
                                                                 {{5, 7}, {7}},
                                                                 {{7}, {7}},
                                                                 {{2, 5, 7}, {7, 3}},
                                                                 {{2, 3, 5, 7}, {2, 3, 7, 4}},
                                                                 {{2, 1, 5, 7}, {3, 7, 4}},
                                                                 {{5, 0}, {0, 3}},
                                                                 {{0, 7}, {7, 3}}}) {
    cases.push_back({"MatMul", {Fed(Floats(a)), Fed(Floats(b))}, {}, 1, false, loose});
  }
  for (const int64_t trans_a : {0, 1}) {
    for (const int64_t trans_b : {0, 1}) {
      const Shape a = trans_a != 0 ? Shape{7, 5} : Shape{5, 7};
      const Shape b = trans_b != 0 ? Shape{3, 7} : Shape{7, 3};
      for (const Shape& c : {Shape{3}, Shape{5, 3}, Shape{5, 1}, Shape{}}) {
        for (const float beta : {1.0f, 0.5f}) {
          cases.push_back({"Gemm",
                           {Fed(Floats(a)), Fed(Floats(b)), Fed(Floats(c))},
                           {{"transA", trans_a}, {"transB", trans_b}, {"alpha", 0.75f}, {"beta", beta}},
                           1,
                           false,
                           loose});
        }
      }
    }
  }
  using Permutation = std::vector<int64_t>;
  const auto permuted = [&](Shape a, Permutation perm_a, Shape b, Permutation perm_b, Permutation perm_y,
                            bool bias = false) {
    Attributes attributes{{"alpha", 0.5f}};
    if (!perm_a.empty()) attributes.Set("perm_a", perm_a);
    if (!perm_b.empty()) attributes.Set("perm_b", perm_b);
    if (!perm_y.empty()) attributes.Set("perm_y", perm_y);
    std::vector<OpInput> inputs = {Fed(Floats(std::move(a))), Fed(Floats(std::move(b)))};
    if (bias) inputs.push_back(Fed(Floats({5})));
    cases.push_back({"onnxtrain.MatMul", std::move(inputs), std::move(attributes), 1, false, loose});
  };
  permuted({2, 3, 4, 8}, {0, 2, 1, 3}, {2, 5, 4, 8}, {0, 2, 3, 1}, {});            // q k^T of [B, T, H, D]
  permuted({2, 4, 3, 5}, {}, {2, 5, 4, 8}, {0, 2, 1, 3}, {0, 2, 1, 3});            // p v back to [B, T, H, D]
  permuted({2, 3, 4, 8}, {0, 2, 3, 1}, {2, 3, 4, 5}, {0, 2, 1, 3}, {0, 2, 1, 3});  // transposed
  permuted({7, 5}, {1, 0}, {7, 3}, {}, {1, 0});
  permuted({2, 3, 7}, {}, {7, 5}, {}, {}, true);
  permuted({2, 3, 7}, {}, {7, 5}, {}, {0, 2, 1}, true);
}

void AddImages(Cases& cases) {
  using Ints = std::vector<int64_t>;
  struct Geometry {
    Shape x, w;
    Attributes attributes;
    Shape y;
  };
  const std::vector<Geometry> geometries = {
      {{3, 4, 7, 9}, {6, 4, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, {3, 6, 7, 9}},
      {{2, 4, 8, 7},
       {6, 2, 3, 2},
       {{"strides", Ints{2, 1}}, {"group", int64_t{2}}, {"pads", Ints{0, 1, 2, 0}}},
       {2, 6, 4, 7}},
      {{2, 3, 9}, {5, 3, 3}, {{"dilations", Ints{2}}}, {2, 5, 5}},
      {{1, 1, 3, 4, 5}, {2, 1, 1, 2, 3}, {}, {1, 2, 3, 3, 3}}};
  for (const Geometry& g : geometries) {
    Attributes with_kernel = g.attributes;
    with_kernel.Set("kernel_shape", Ints(g.w.begin() + 2, g.w.end()));
    Attributes with_input = g.attributes;
    with_input.Set("input_shape", Ints(g.x.begin(), g.x.end()));
    const Shape bias{g.w[0]};
    cases.push_back({"Conv", {Fed(Floats(g.x)), Fed(Floats(g.w)), Fed(Floats(bias))}, g.attributes, 1, true, 5e-5});
    cases.push_back({"Conv", {Fed(Floats(g.x)), Fed(Floats(g.w))}, g.attributes, 1, false, 5e-5});
    cases.push_back({"onnxtrain.ConvInputGrad", {Fed(Floats(g.y)), Fed(Floats(g.w))}, with_input, 1, false, 1e-4});
    cases.push_back({"onnxtrain.ConvWeightGrad", {Fed(Floats(g.y)), Fed(Floats(g.x))}, with_kernel, 2, false, 2e-4});
  }
  for (const Attributes& window :
       std::vector<Attributes>{{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}},
                               {{"kernel_shape", Ints{3, 2}}, {"pads", Ints{1, 0, 1, 1}}, {"strides", Ints{1, 2}}}}) {
    const Shape y = window.Ints("kernel_shape")[0] == 2 ? Shape{2, 3, 3, 4} : Shape{2, 3, 7, 4};
    cases.push_back({"MaxPool", {Fed(Floats({2, 3, 7, 8}))}, window, 2});
    cases.push_back({"onnxtrain.MaxPoolGrad", {Fed(Floats(y)), Fed(Floats({2, 3, 7, 8}))}, window, 1, false, 1e-5});
  }
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"})
    cases.push_back({op, {Fed(Floats({2, 3, 7, 8}))}, {}, 1, false, 1e-5});
  for (const Shape& x : {Shape{4, 3, 5, 7}, Shape{9, 5}}) {
    const Shape c{x[1]};
    const std::vector<OpInput> statistics = {Fed(Floats(c)), Fed(Floats(c, 0.5, 2))};
    cases.push_back({"BatchNormalization",
                     {Fed(Floats(x)), Fed(Floats(c)), Fed(Floats(c)), statistics[0], statistics[1]},
                     {{"training_mode", int64_t{1}}},
                     3,
                     true,
                     2e-5});
    cases.push_back({"BatchNormalization",
                     {Fed(Floats(x)), Fed(Floats(c)), Fed(Floats(c)), statistics[0], statistics[1]},
                     {},
                     1,
                     true,
                     2e-5});
    cases.push_back(
        {"onnxtrain.BatchNormalizationGrad", {Fed(Floats(x)), Fed(Floats(x)), Fed(Floats(c))}, {}, 3, true, 1e-4});
    cases.push_back({"onnxtrain.BatchNormalizationGrad",
                     {Fed(Floats(x)), Fed(Floats(x)), Fed(Floats(c)), statistics[0], statistics[1]},
                     {},
                     3,
                     true,
                     1e-4});
  }
}

void AddLosses(Cases& cases) {
  for (const auto& [scores, labels] :
       std::vector<std::pair<Shape, Shape>>{{{5, 7}, {5}}, {{3, 1500}, {3}}, {{2, 5, 3}, {2, 3}}, {{1, 1}, {1}}}) {
    const int64_t classes = scores[1];
    for (const char* reduction : {"mean", "sum", "none"}) {
      const Shape loss = std::string(reduction) == "none" ? labels : Shape{};
      for (const bool weighted : {false, true}) {
        const std::vector<OpInput> rest = {Fed(Longs(labels, 0, classes - 1)),
                                           weighted ? Fed(Floats({classes}, 0.5, 2)) : Omitted()};
        const Attributes attributes{{"reduction", reduction}, {"ignore_index", int64_t{0}}};
        for (const std::string op : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}) {
          const bool float_only = weighted;  // class weights are float
          cases.push_back({op, {Fed(Floats(scores)), rest[0], rest[1]}, attributes, 1, float_only, 2e-5});
          cases.push_back({"onnxtrain." + op + "Grad",
                           {Fed(Floats(loss)), Fed(Floats(scores)), rest[0], rest[1]},
                           attributes,
                           1,
                           float_only,
                           2e-5});
        }
      }
    }
    cases.push_back({"onnxtrain.SoftmaxCrossEntropyLoss",
                     {Fed(Floats(scores)), Fed(Longs(labels, 0, classes - 1)), Omitted()},
                     {{"label_smoothing", 0.1f}},
                     1,
                     false,
                     2e-5});
    cases.push_back(
        {"onnxtrain.CountLabels", {Fed(Longs(labels, 0, classes - 1))}, {{"ignore_index", int64_t{0}}}, 1, true});
  }
}

void AddBinaryLosses(Cases& cases) {
  for (const char* reduction : {"mean", "sum", "none"}) {
    const Attributes attributes = {{"reduction", reduction}};
    const Shape shape = {7, 93};
    const Shape dloss = std::string(reduction) == "none" ? shape : Shape{};
    const Tensor target = RandomTensor(DType::kFloat, shape, 6, 0, 1);
    cases.push_back({"onnxtrain.BinaryCrossEntropyWithLogits", {Fed(Floats(shape)), Fed(target)}, attributes, 1,
                     false, 1e-5});
    cases.push_back({"onnxtrain.BinaryCrossEntropyWithLogitsGrad",
                     {Fed(RandomTensor(DType::kFloat, dloss, 7)), Fed(Floats(shape)), Fed(target)}, attributes, 1,
                     false, 1e-5});
  }
}

void AddDropouts(Cases& cases) {
  const Attributes drawing = {{"ratio", 0.25f}, {"seed", int64_t{12}}, {"draw_id", int64_t{3}}};
  for (const Shape& shape : {Shape{3, 7}, Shape{5, 1, 409}}) {
    cases.push_back({"onnxtrain.Dropout", {Fed(Floats(shape)), Fed(Tensor::Scalar<int64_t>(7))}, drawing, 2});
    cases.push_back(
        {"onnxtrain.DropoutGrad", {Fed(Floats(shape)), Fed(Bools(shape))}, {{"ratio", 0.25f}}, 1, false});
    cases.push_back({"Dropout", {Fed(Floats(shape))}, {}, 2});
  }
}

void AddStep(Cases& cases) {
  const auto scalar = [](double value) { return Fed(Tensor::Scalar<double>(value)); };
  for (const bool apply : {true, false}) {
    for (const int64_t count : {1, 1000}) {
      const Tensor w = Floats({count}), g = Floats({count}), m = Floats({count}), v = Floats({count}, 0, 1);
      const std::vector<OpInput> tail = {scalar(1e-2), scalar(0.5), Fed(Tensor::Scalar<int64_t>(3)),
                                         Fed(Tensor::Scalar<int64_t>(apply ? 1 : 0).CastTo(DType::kBool))};
      for (const char* op : {"SGD", "Adagrad", "Lion"}) {
        std::vector<OpInput> inputs = {Fed(w), Fed(g), Fed(v)};
        inputs.insert(inputs.end(), tail.begin(), tail.end());
        Attributes attributes{{"weight_decay", 0.1f}};
        if (std::string(op) == "SGD")
          attributes = {{"weight_decay", 0.1f}, {"momentum", 0.9f}, {"nesterov", int64_t{1}}};
        cases.push_back({std::string("onnxtrain.") + op, inputs, attributes, 2, true});
      }
      for (const char* op : {"Adam", "AdamW"}) {
        std::vector<OpInput> inputs = {Fed(w), Fed(g), Fed(m), Fed(v)};
        inputs.insert(inputs.end(), tail.begin(), tail.end());
        cases.push_back({std::string("onnxtrain.") + op, inputs, {{"weight_decay", 0.1f}}, 3, true});
      }
    }
  }
  cases.push_back({"onnxtrain.StepSums", {Fed(Floats({})), Fed(Floats({}, 1, 9))}, {}, 2, true});
  cases.push_back({"onnxtrain.SquaredNorm", {Fed(Floats({70001})), Fed(Floats({3, 5}))}, {}, 1, true});
  cases.push_back(
      {"onnxtrain.StepControl", {Fed(Tensor::FromVector<double>({4}, {12.5, 4, 0, 90}))}, {{"clip", 1.0f}}, 4, true});
  for (const char* schedule : {"constant", "linear", "cosine", "wsd"}) {
    for (const int64_t step : {0, 3, 70}) {
      Attributes attributes{{"schedule", schedule},
                            {"lr", 0.1f},
                            {"min_lr", 0.01f},
                            {"warmup_steps", int64_t{2}},
                            {"max_steps", int64_t{50}}};
      if (std::string(schedule) == "wsd") attributes.Set("decay_steps", int64_t{10});
      cases.push_back({"onnxtrain.LearningRate", {Fed(Tensor::Scalar<int64_t>(step))}, attributes, 1, true, 1e-12});
    }
  }
  cases.push_back({"onnxtrain.AdvanceStep",
                   {Fed(Tensor::Scalar<int64_t>(41)), Fed(Tensor::Scalar<int64_t>(1).CastTo(DType::kBool))},
                   {},
                   1,
                   true});
}

}  // namespace

std::vector<ParityCase> AllParityCases() {
  Cases cases;
  AddUnary(cases);
  AddElementwise(cases);
  AddClips(cases);
  AddShapeParityCases(cases);
  AddReductionParityCases(cases);
  AddRows(cases);
  AddProducts(cases);
  AddImages(cases);
  AddImageParityCases(cases);
  AddLosses(cases);
  AddBinaryLosses(cases);
  AddDropouts(cases);
  AddIndexParityCases(cases);
  AddStep(cases);
  return cases;
}

}  // namespace onnxtrain
