// SPDX-License-Identifier: Apache-2.0
#include "graph/function_inliner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/op_registry.h"
#include "graph/text_reader.h"
#include "graph/text_writer.h"
#include "graph/verifier.h"

namespace onnxtrain {
namespace {

using ::testing::HasSubstr;

Graph Read(const std::string& text) {
  StatusOr<TextGraph> read = ReadGraphText(text, OpRegistry::Default());
  CHECK_WITH(read.ok(), read.status().message());
  return std::move(read->graph);
}

TEST(InlineFunctionBody, NamesUsesAndRolesStay) {
  Graph graph = Read(R"(
    <metadata_props: ["role.loss" : "y", "update.s" : "y"]>
    g (float[1] x) => (float[1] y, float[1] z) <float[1] s> { y = Mish (x) z = Neg (y) })");
  Node* node = graph.FindValue("y")->producer();
  ASSERT_TRUE(HasFunctionBody(*node));
  ASSERT_EQ(InlineFunctionBody(graph, node).message(), "");
  EXPECT_EQ(VerifyGraph(graph).message(), "");
  EXPECT_EQ(graph.FindRole("loss"), graph.FindValue("y"));
  EXPECT_EQ(graph.states()[0]->update(), graph.FindValue("y"));
  EXPECT_EQ(graph.outputs()[0], graph.FindValue("y"));
  EXPECT_THAT(WriteGraphText(graph), HasSubstr("Tanh"));
  EXPECT_EQ(graph.nodes().size(), 4u) << WriteGraphText(graph);  // Softplus, Tanh, Mul, Neg
}

TEST(InlineFunctionBody, AttributesHaveTheirDefaults) {
  Graph graph = Read("g (float[3] x) => (float[3] y) { y = ThresholdedRelu (x) }");
  ASSERT_EQ(InlineFunctionBody(graph, graph.FindValue("y")->producer()).message(), "");
  EXPECT_THAT(WriteGraphText(graph), HasSubstr("{1.0}"));
  Graph given = Read("g (float[3] x) => (float[3] y) { y = ThresholdedRelu <alpha = 2.5> (x) }");
  ASSERT_EQ(InlineFunctionBody(given, given.FindValue("y")->producer()).message(), "");
  EXPECT_THAT(WriteGraphText(given), HasSubstr("{2.5}"));
}

TEST(InlineFunctionBody, BodiesThatDependOnTypes) {
  Graph graph = Read("g (double[2,8] x) => (double[2,8] y) { y = Gelu <approximate = \"tanh\"> (x) }");
  ASSERT_EQ(InlineFunctionBody(graph, graph.FindValue("y")->producer()).message(), "");
  EXPECT_EQ(VerifyGraph(graph).message(), "");
  EXPECT_THAT(WriteGraphText(graph), HasSubstr("Tanh"));
}

TEST(InlineFunctionBody, BodiesOfManyNodesFoldTheirShapes) {
  Graph graph = Read(R"(
    g (float[2,3,4,8] q, float[2,3,5,8] k, float[2,3,5,8] v) => (float[2,3,4,8] y) {
      y = Attention <is_causal = 1> (q, k, v) })");
  ASSERT_EQ(InlineFunctionBody(graph, graph.FindValue("y")->producer()).message(), "");
  EXPECT_EQ(VerifyGraph(graph).message(), "");
  const std::string text = WriteGraphText(graph);
  EXPECT_EQ(text.find("Shape ("), std::string::npos) << text;
  EXPECT_EQ(text.find("= Attention"), std::string::npos) << text;
}

TEST(InlineFunctionBody, OperatorsWithoutBodyStay) {
  Graph graph = Read("g (float[3] x) => (float[3] y) { y = Relu (x) t = Sin (y) }");
  const std::string before = WriteGraphText(graph);
  Node* node = graph.FindValue("t")->producer();
  EXPECT_FALSE(HasFunctionBody(*node));
  EXPECT_THAT(InlineFunctionBody(graph, node).message(), HasSubstr("no function body"));
  EXPECT_EQ(WriteGraphText(graph), before);
}

}  // namespace
}  // namespace onnxtrain
