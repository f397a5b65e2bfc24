// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "graph/op_registry.h"
#include "tests/support/gradient_check.h"
#include "tests/support/lifted_op.h"
#include "tests/support/naive_reference.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {
namespace {

// The definition: a sum of products over all values of all letters. No ellipsis.
Tensor Naive(const std::string& equation, const std::vector<Tensor>& operands) {
  const size_t arrow = equation.find("->");
  std::vector<std::string> terms(1);
  for (char c : equation.substr(0, arrow)) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t axis = 0; axis < terms[i].size(); ++axis) sizes[terms[i][axis]] = operands[i].shape()[axis];
  }
  const std::string result = equation.substr(arrow + 2);
  std::string summed;
  Shape result_shape, summed_shape;
  for (char letter : result) result_shape.push_back(sizes[letter]);
  for (const auto& [letter, size] : sizes) {
    if (result.find(letter) != std::string::npos) continue;
    summed += letter;
    summed_shape.push_back(size);
  }
  return FromIndices(operands[0].dtype(), result_shape, [&](const Index& index) {
    std::map<char, int64_t> at;
    for (size_t i = 0; i < result.size(); ++i) at[result[i]] = index[i];
    double sum = 0;
    for (int64_t s = 0; s < ElementsOf(summed_shape); ++s) {
      const Index inner = Unflatten(s, summed_shape);
      for (size_t i = 0; i < summed.size(); ++i) at[summed[i]] = inner[i];
      double product = 1;
      for (size_t i = 0; i < terms.size(); ++i) {
        Index place;
        for (char letter : terms[i]) place.push_back(at[letter]);
        product *= At(operands[i], place);
      }
      sum += product;
    }
    return sum;
  });
}

struct Case {
  std::string equation;
  std::vector<Shape> shapes;
};

std::vector<Case> Cases() {
  return {{"ij,jk->ik", {{3, 4}, {4, 5}}},
          {"bhqd,bhkd->bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}}},
          {"bhqk,bkhd->bqhd", {{2, 3, 4, 5}, {2, 5, 3, 2}}},
          {"ij->ji", {{3, 4}}},
          {"ijk->j", {{2, 3, 4}}},
          {"i,j->ij", {{3}, {4}}},
          {"i,i->", {{5}, {5}}},
          {"ij,kj->ki", {{3, 4}, {2, 4}}},
          {"ii->i", {{4, 4}}},
          {"iji->j", {{3, 2, 3}}},
          {"ii->", {{4, 4}}},
          {"ij,j,jk->ik", {{3, 4}, {4}, {4, 2}}},
          {"ij,kl->il", {{2, 3}, {4, 5}}},
          {"aij,ai->aj", {{2, 3, 4}, {2, 3}}}};
}

TEST(EinsumTest, MatchesItsDefinition) {
  for (const Case& test : Cases()) {
    SCOPED_TRACE(test.equation);
    std::vector<OpInput> inputs;
    std::vector<Tensor> operands;
    for (const Shape& shape : test.shapes) {
      operands.push_back(RandomTensor(DType::kFloat, shape, 50 + operands.size()));
      inputs.push_back(Fed(operands.back()));
    }
    ExpectNear(RunLiftedOp("Einsum", 12, inputs, {{"equation", test.equation}})[0], Naive(test.equation, operands),
               2e-6);
  }
}

TEST(EinsumTest, EllipsisAndImplicitResult) {
  const Tensor a = RandomTensor(DType::kFloat, {2, 3, 4}, 1), b = RandomTensor(DType::kFloat, {3, 4, 5}, 2);
  const Tensor c = RandomTensor(DType::kFloat, {2, 1, 4, 5}, 3);
  const auto run = [](const std::string& equation, const std::vector<OpInput>& inputs) {
    return RunLiftedOp("Einsum", 12, inputs, {{"equation", equation}})[0];
  };
  ExpectNear(run("...ij->...ji", {Fed(a)}), Naive("aij->aji", {a}), 0);
  ExpectNear(run("ba", {Fed(a.Reshaped({6, 4}))}), Naive("ba->ab", {a.Reshaped({6, 4})}), 0);
  ExpectNear(run("aij, ijk", {Fed(a), Fed(b)}), Naive("aij,ijk->ak", {a, b}), 2e-6);
  const Tensor batched = run("...ij,...jk->...ik", {Fed(a), Fed(c)});
  EXPECT_EQ(ToString(batched.shape()), "[2,2,3,5]");
  ExpectNear(batched,
             FromIndices(DType::kFloat, {2, 2, 3, 5},
                         [&](const Index& i) {
                           double sum = 0;
                           for (int64_t j = 0; j < 4; ++j) sum += At(a, {i[1], i[2], j}) * At(c, {i[0], 0, j, i[3]});
                           return sum;
                         }),
             2e-6);
}

TEST(EinsumTest, Gradients) {
  for (const Case& test : Cases()) {
    SCOPED_TRACE(test.equation);
    Graph graph(OpRegistry::Default());
    std::vector<OpInput> inputs;
    for (const Shape& shape : test.shapes) {
      inputs.push_back(Fed(RandomTensor(DType::kDouble, shape, 60 + inputs.size())));
    }
    const Status added = AddLiftedOp(graph, "Einsum", 12, inputs, {{"equation", test.equation}});
    ASSERT_TRUE(added.ok()) << added.message();
    ExpectGradientMatchesFiniteDifference(graph, FeedsOf(inputs));
  }
}

TEST(EinsumTest, RefusesEquationsThatDoNotFit) {
  const std::vector<OpInput> inputs{Fed(RandomTensor(DType::kFloat, {2, 3}, 1)),
                                    Fed(RandomTensor(DType::kFloat, {4, 3}, 2))};
  for (const char* equation : {"ij,jk->ik", "ij->ij", "ij,kj->iz", "ijk,kj->i", "i+,kj->i", ""}) {
    SCOPED_TRACE(equation);
    Graph graph(OpRegistry::Default());
    EXPECT_FALSE(AddLiftedOp(graph, "Einsum", 12, inputs, {{"equation", std::string(equation)}}).ok());
  }
}

}  // namespace
}  // namespace onnxtrain
