// SPDX-License-Identifier: Apache-2.0
#include "graph/dim_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onnxtrain {
namespace {

using ::testing::HasSubstr;

TEST(EvaluateDim, ReadsExpressions) {
  const DimValues values{{"batch", 4}, {"s0", 7}, {"odd name!", 3}, {"zero", 0}};
  EXPECT_EQ(EvaluateDim("batch", values), 4);
  EXPECT_EQ(EvaluateDim("2*batch", values), 8);
  EXPECT_EQ(EvaluateDim("s0 + 1", values), 8);
  EXPECT_EQ(EvaluateDim("(s0 - 1)//2 * batch", values), 12);
  EXPECT_EQ(EvaluateDim("s0 % batch", values), 3);
  EXPECT_EQ(EvaluateDim("-s0 + 10", values), 3);
  EXPECT_EQ(EvaluateDim("odd name!", values), 3);
  EXPECT_EQ(EvaluateDim("12", values), 12);
  EXPECT_EQ(EvaluateDim("zero", values), 0);
}

TEST(EvaluateDim, RefusesWhatItCannotKnow) {
  const DimValues values{{"a", 4}, {"zero", 0}};
  for (const char* text :
       {"b", "a + b", "a +", "(a", "a b", "", "a // zero", "9223372036854775807 * a", "99999999999999999999"}) {
    EXPECT_EQ(EvaluateDim(text, values), std::nullopt) << text;
  }
  EXPECT_EQ(EvaluateDim(std::string(100000, '('), values), std::nullopt);
  EXPECT_EQ(EvaluateDim(std::string(100000, '-') + "a", values), std::nullopt);
}

std::optional<int64_t> Solved(const std::string& symbol, int64_t size, const std::string& wanted,
                              DimValues values = {}) {
  if (!SolveDim(symbol, size, values)) return std::nullopt;
  const auto found = values.find(wanted);
  return found == values.end() ? std::nullopt : std::optional<int64_t>(found->second);
}

TEST(SolveDim, FindsTheOneUnknown) {
  EXPECT_EQ(Solved("batch", 5, "batch"), 5);
  EXPECT_EQ(Solved("2*batch", 10, "batch"), 5);
  EXPECT_EQ(Solved("s0 + 3", 10, "s0"), 7);
  EXPECT_EQ(Solved("a*(s0 - 1)", 12, "s0", {{"a", 3}}), 5);
  EXPECT_EQ(Solved("odd name!", 6, "odd name!"), 6);
  EXPECT_EQ(Solved("s0//2", 10, "s0"), std::nullopt);
  EXPECT_EQ(Solved("a + b", 10, "a"), std::nullopt);
}

TEST(SolveDim, KnowsWhatIsImpossible) {
  DimValues values{{"known", 4}};
  EXPECT_FALSE(SolveDim("2*batch", 7, values));
  EXPECT_FALSE(SolveDim("batch + 8", 7, values));
  EXPECT_FALSE(SolveDim("known", 5, values));
  EXPECT_TRUE(SolveDim("known", 4, values));
}

ModelValue Input(const std::string& name, std::vector<ModelDim> dims) {
  ModelValue value;
  value.name = name;
  value.type = "float[...]";
  value.dtype = DType::kFloat;
  value.dims = std::move(dims);
  return value;
}

TEST(BindInputs, SymbolsFollowFromDataAndOptions) {
  const std::vector<ModelValue> inputs{Input("mask", {{{}, "2*batch"}, {{}, "seq"}}),
                                       Input("x", {{{}, "batch"}, {3, ""}})};
  const auto bound = BindInputs(inputs, {{"x", {DType::kFloat, {5, 3}}}}, {{"seq", 7}});
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(ToString(bound->at("mask")), "float[10,7]");
}

TEST(BindInputs, UnboundDimensionsAreNamed) {
  const Status status = BindInputs({Input("x", {{{}, "batch"}})}, {}, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kUsage);
  EXPECT_THAT(status.message(), HasSubstr("dimension 'batch' (axis 0 of input 'x'"));
  EXPECT_THAT(BindInputs({Input("x", {{{}, ""}})}, {}, {}).status().message(), HasSubstr("must come from data"));
  ModelValue unranked = Input("x", {});
  unranked.dims.reset();
  EXPECT_THAT(BindInputs({unranked}, {}, {}).status().message(), HasSubstr("no declared rank"));
  EXPECT_THAT(BindInputs({Input("x", {{{}, "n"}})}, {}, {{"n", -1}}).status().message(), HasSubstr("cannot be -1"));
}

TEST(BindInputs, DataMustFitTheDeclaration) {
  const auto error_of = [](const std::vector<ModelValue>& inputs, const std::map<std::string, TensorType>& given) {
    const Status status = BindInputs(inputs, given, {}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidData) << status.message();
    return status.message();
  };
  EXPECT_THAT(error_of({Input("x", {{3, ""}})}, {{"x", {DType::kFloat, {4}}}}), HasSubstr("axis 0 is fixed"));
  EXPECT_THAT(error_of({Input("x", {{3, ""}})}, {{"x", {DType::kFloat, {3, 1}}}}), HasSubstr("ranks differ"));
  EXPECT_THAT(error_of({Input("x", {{3, ""}})}, {{"x", {DType::kInt64, {3}}}}), HasSubstr("the data is int64[3]"));
  EXPECT_THAT(error_of({Input("x", {{{}, "n"}}), Input("y", {{{}, "n"}})},
                       {{"x", {DType::kFloat, {3}}}, {"y", {DType::kFloat, {4}}}}),
              HasSubstr("'n' is already 3"));
}

}  // namespace
}  // namespace onnxtrain
