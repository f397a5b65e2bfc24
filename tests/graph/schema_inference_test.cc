// SPDX-License-Identifier: Apache-2.0
#include "graph/schema_inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onnxtrain {
namespace {

using ::testing::HasSubstr;

struct Request {
  std::string op;
  std::vector<TensorType> inputs;
  Attributes attributes = {};
  std::vector<const Tensor*> constants = {};
  std::vector<bool> wanted = {true};
};

StatusOr<std::vector<TensorType>> Infer(Request request) {
  request.constants.resize(request.inputs.size());
  return InferFromSchema({request.op, request.attributes, request.inputs, request.constants, request.wanted});
}

std::string FirstType(Request request) {
  StatusOr<std::vector<TensorType>> types = Infer(std::move(request));
  return types.ok() ? ToString((*types)[0]) : types.status().message();
}

const TensorType kMatrix{DType::kFloat, {3, 4}};
const TensorType kInts2{DType::kInt64, {2}};

TEST(SchemaInference, TypesFollowFromInputs) {
  EXPECT_EQ(FirstType({"Add", {kMatrix, {DType::kFloat, {4}}}}), "float[3,4]");
  EXPECT_EQ(FirstType({"MatMul", {kMatrix, {DType::kFloat, {4, 5}}}}), "float[3,5]");
  EXPECT_EQ(FirstType({"Shape", {kMatrix}}), "int64[2]");
  EXPECT_EQ(FirstType({"Less", {kMatrix, {DType::kFloat, {}}}}), "bool[3,4]");
  EXPECT_EQ(FirstType({"Relu", {{DType::kDouble, {0, 7}}}}), "double[0,7]");
}

TEST(SchemaInference, ConstantsGiveShapes) {
  const Tensor shape = Tensor::Ints({2, -1});
  EXPECT_EQ(FirstType({"Reshape", {kMatrix, kInts2}, {}, {nullptr, &shape}}), "float[2,6]");
  EXPECT_THAT(FirstType({"Reshape", {kMatrix, kInts2}}), HasSubstr("depends on data"));
}

TEST(SchemaInference, AttributesGiveShapes) {
  EXPECT_EQ(FirstType({"Transpose", {kMatrix}, {{"perm", std::vector<int64_t>{1, 0}}}}), "float[4,3]");
  EXPECT_EQ(FirstType({"Cast", {kMatrix}, {{"to", int64_t{7}}}}), "int64[3,4]");
}

TEST(SchemaInference, OmittedOutputsHaveNoType) {
  StatusOr<std::vector<TensorType>> types =
      Infer({"LayerNormalization", {kMatrix, {DType::kFloat, {4}}}, {}, {}, {true, false, true}});
  ASSERT_TRUE(types.ok()) << types.status().message();
  EXPECT_FALSE((*types)[1].known());
  EXPECT_EQ(ToString((*types)[2]), "float[3,1]");
}

TEST(SchemaInference, OtherStandardDomains) {
  const TensorType scalar{DType::kFloat, {}}, count{DType::kInt64, {}};
  StatusOr<std::vector<TensorType>> types = Infer({"ai.onnx.preview.training.Adam",
                                                   {scalar, count, kMatrix, kMatrix, kMatrix, kMatrix},
                                                   {},
                                                   {},
                                                   {true, true, true}});
  ASSERT_TRUE(types.ok()) << types.status().message();
  EXPECT_EQ((*types)[2], kMatrix);
}

TEST(SchemaInference, RefusesWhatTheSchemaForbids) {
  EXPECT_THAT(FirstType({"Add", {kMatrix, {DType::kInt32, {4}}}}), HasSubstr("inconsistent type"));
  EXPECT_THAT(FirstType({"Sqrt", {kInts2}}), HasSubstr("unsupported type"));
  EXPECT_THAT(FirstType({"Add", {kMatrix}}), HasSubstr("Add"));
  EXPECT_THAT(FirstType({"Add", {kMatrix, {}}}), HasSubstr("single"));
  EXPECT_THAT(FirstType({"Relu", {kMatrix}, {{"alpha", 1.0f}}}), HasSubstr("Unrecognized attribute"));
  EXPECT_THAT(FirstType({"Cast", {kMatrix}}), HasSubstr("Required attribute 'to'"));
  EXPECT_THAT(FirstType({"Cast", {kMatrix}, {{"to", 1.0f}}}), HasSubstr("attribute type"));
  EXPECT_THAT(FirstType({"MatMul", {kMatrix, {DType::kFloat, {3, 5}}}}), HasSubstr("dimension"));
  EXPECT_THAT(FirstType({"NonZero", {kMatrix}}), HasSubstr("[2,?]"));
  EXPECT_THAT(FirstType({"Frobnicate", {kMatrix}}), HasSubstr("no operator 'Frobnicate' in opset 24"));
  EXPECT_THAT(FirstType({"com.example.Relu", {kMatrix}}), HasSubstr("'com.example'"));
}

TEST(SchemaInference, EveryStandardOperatorHasADefinition) {
  const OpRegistry& registry = OpRegistry::Default();
  for (const char* op : {"Relu", "Attention", "NonMaxSuppression", "ai.onnx.preview.training.Adam", "LSTM"}) {
    EXPECT_NE(registry.Find(op), nullptr) << op;
  }
  EXPECT_NE(registry.Find("Upsample"), nullptr) << "deprecated, but lifted to Resize";
  EXPECT_TRUE(registry.Find("RandomNormal")->random);
  EXPECT_EQ(registry.Find("Frobnicate"), nullptr);
}

}  // namespace
}  // namespace onnxtrain
