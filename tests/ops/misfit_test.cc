// SPDX-License-Identifier: Apache-2.0
// Inputs that do not fit each other are refused when the node is made, before a kernel could read outside of them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/op_registry.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

struct Misfit {
  std::string op;
  std::vector<OpInput> inputs;
  Attributes attributes;
  size_t outputs = 1;
};

OpInput Floats(Shape shape) { return Fed(RandomTensor(DType::kFloat, std::move(shape), 1)); }
OpInput Indices(Shape shape) { return Fed(RandomTensor(DType::kInt64, std::move(shape), 2, 0, 0)); }
OpInput Numbers(const std::vector<int64_t>& values) { return Constant(Tensor::Ints(values)); }
std::vector<int64_t> List(std::vector<int64_t> values) { return values; }

std::vector<Misfit> StandardOperators() {
  return {
      {"Reshape", {Floats({6}), Numbers({2, 2})}, {}},
      {"PRelu", {Floats({3}), Floats({2, 3})}, {}},
      {"PRelu", {Floats({2, 3}), Floats({2})}, {}},
      {"Clip", {Floats({3}), Floats({0})}, {}},
      {"Add", {Floats({2, 3}), Floats({2})}, {}},
      {"Where", {Floats({2}), Floats({2}), Floats({2})}, {}},
      {"Concat", {Floats({2, 3}), Floats({2, 4})}, {{"axis", int64_t{0}}}},
      {"Split", {Floats({5}), Numbers({2, 2})}, {}, 2},
      {"Pad", {Floats({2}), Numbers({1})}, {}},
      {"Pad", {Floats({2}), Numbers({1, 1}), Floats({0})}, {}},
      {"Transpose", {Floats({2, 3})}, {{"perm", List({0, 0})}}},
      {"ScatterElements", {Floats({2, 3}), Indices({2, 2}), Floats({2, 1})}, {}},
      {"ScatterElements", {Floats({2, 3}), Indices({2, 4}), Floats({2, 4})}, {}},
      {"GatherElements", {Floats({2, 3}), Indices({1, 4})}, {}},
      {"GatherElements", {Floats({2, 3}), Indices({3})}, {}},
      {"ScatterND", {Floats({2, 3}), Indices({1, 1}), Floats({1, 2})}, {}},
      {"ScatterND", {Floats({2, 3}), Indices({1, 3}), Floats({1})}, {}},
      {"GatherND", {Floats({2, 3}), Indices({1, 3})}, {}},
      {"GatherND", {Floats({2, 3}), Indices({3, 1})}, {{"batch_dims", int64_t{1}}}},
      {"TopK", {Floats({3}), Numbers({4})}, {}, 2},
      {"OneHot", {Indices({2}), Numbers({3}), Floats({1})}, {}},
      {"Trilu", {Floats({2, 2}), Numbers({})}, {}},
      {"Range", {Numbers({0, 1}), Numbers({3}), Numbers({1})}, {}},
      {"ConstantOfShape", {Numbers({2})}, {{"value", Tensor::Ints({})}}},
      {"Unsqueeze", {Floats({3}), Numbers({4})}, {}},
      {"Squeeze", {Floats({3}), Numbers({0})}, {}},
  };
}

std::vector<Misfit> GradientOperators() {
  return {
      {"onnxtrain.ReluGrad", {Floats({3}), Floats({4})}, {}},
      {"onnxtrain.GeluGrad", {Floats({3})}, {}},
      {"onnxtrain.EluGrad", {Floats({3}), Floats({3})}, {{"alpha", int64_t{1}}}},
      {"onnxtrain.ClipGrad", {Floats({3}), Floats({3}), Floats({2})}, {}},
      {"onnxtrain.SliceGrad", {Floats({3})}, {{"shape", List({4})}, {"starts", List({2})}, {"steps", List({1})}}},
      {"onnxtrain.SliceGrad", {Floats({3})}, {{"shape", List({4})}, {"starts", List({-1})}, {"steps", List({1})}}},
      {"onnxtrain.SliceGrad",
       {Floats({2})},
       {{"shape", List({4})}, {"starts", List({3})}, {"steps", List({INT64_MIN})}}},
      {"onnxtrain.GatherGrad", {Indices({2}), Floats({2, 5})}, {{"axis", int64_t{0}}, {"shape", List({3, 4})}}},
      {"onnxtrain.GatherGrad", {Indices({2}), Floats({2, 4})}, {{"axis", int64_t{2}}, {"shape", List({3, 4})}}},
      {"onnxtrain.GatherNDGrad", {Indices({2, 3}), Floats({2})}, {{"batch_dims", int64_t{0}}, {"shape", List({3, 4})}}},
      {"onnxtrain.ReduceProdGrad", {Floats({2, 3}), Floats({2, 3})}, {{"axes", List({1})}}},
      {"onnxtrain.ReduceProdGrad", {Floats({2, 3}), Floats({2, 1})}, {{"axes", List({2})}}},
      {"onnxtrain.ResizeGrad", {Floats({2, 3})}, {{"shape", List({2})}}},
      {"onnxtrain.PadGrad", {Floats({2}), Numbers({1, 1})}, {{"shape", List({2})}, {"mode", std::string("edge")}}},
  };
}

// Refused by the graph or, at the latest, when the kernel is made.
void ExpectRefused(const Misfit& misfit) {
  std::string types;
  for (const OpInput& input : misfit.inputs) types += " " + ToString(input.tensor->type());
  SCOPED_TRACE(misfit.op + types);
  Graph graph(OpRegistry::Default());
  const Status added = AddOp(graph, misfit.op, misfit.inputs, misfit.attributes, misfit.outputs);
  if (!added.ok()) {
    EXPECT_EQ(added.code(), StatusCode::kInvalidModel);
    EXPECT_NE(added.message().find(misfit.op), std::string::npos) << added.message();
    return;
  }
  StatusOr<OpRunnerResult> result = RunGraph(graph, FeedsOf(misfit.inputs));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidModel) << result.status().message();
}

TEST(MisfitTest, StandardOperatorsAreRefused) {
  for (const Misfit& misfit : StandardOperators()) ExpectRefused(misfit);
}

TEST(MisfitTest, GradientOperatorsAreRefused) {
  for (const Misfit& misfit : GradientOperators()) ExpectRefused(misfit);
}

}  // namespace
}  // namespace onnxtrain
