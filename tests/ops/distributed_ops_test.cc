// SPDX-License-Identifier: Apache-2.0
// Types, refusals and byte sharing of collectives, step control and optimizers. Their numbers are tested with the
// kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

using ::testing::HasSubstr;

class DistributedOps : public ::testing::Test {
 protected:
  Value* Input(DType dtype, Shape shape) {
    return graph_.AddInput("x" + std::to_string(graph_.inputs().size()), {dtype, std::move(shape)});
  }
  Value* Floats(Shape shape) { return Input(DType::kFloat, std::move(shape)); }

  // The node, or the message of the refusal in error_.
  Node* Make(std::string op, std::vector<Value*> inputs, Attributes attributes, size_t outputs) {
    NodeSpec spec{"onnxtrain." + op, std::move(inputs), std::move(attributes), {}, "", {}};
    for (size_t i = 0; i < outputs; ++i) spec.output_names.push_back("y");
    StatusOr<Node*> node = graph_.Insert(nullptr, std::move(spec));
    error_ = node.status().message();
    return node.ok() ? *node : nullptr;
  }
  void ExpectTypes(const Node* node, const std::vector<std::string>& types) {
    ASSERT_NE(node, nullptr) << error_;
    ASSERT_EQ(node->outputs().size(), types.size());
    for (size_t i = 0; i < types.size(); ++i) EXPECT_EQ(ToString(node->output(i)->type()), types[i]);
  }
  void ExpectRefused(const Node* node, const std::string& part) {
    EXPECT_EQ(node, nullptr);
    EXPECT_THAT(error_, HasSubstr(part));
  }

  // w, g, moments, rate, scale, step, apply
  std::vector<Value*> OptimizerInputs(size_t moments) {
    std::vector<Value*> inputs;
    for (size_t i = 0; i < 2 + moments; ++i) inputs.push_back(Floats({4}));
    for (int i = 0; i < 2; ++i) inputs.push_back(Input(DType::kDouble, {}));
    inputs.push_back(Input(DType::kInt64, {}));
    inputs.push_back(Input(DType::kBool, {}));
    return inputs;
  }

  Graph graph_{OpRegistry::Default()};
  std::string error_;
};

TEST_F(DistributedOps, CollectivesKeepOrScaleTheirLength) {
  ExpectTypes(Make("AllReduce", {Floats({2, 3})}, {{"op", "sum"}}, 1), {"float[2,3]"});
  ExpectTypes(Make("ReduceScatter", {Floats({6})}, {{"world_size", int64_t{3}}}, 1), {"float[2]"});
  ExpectTypes(Make("AllGather", {Floats({2})}, {{"world_size", int64_t{3}}}, 1), {"float[6]"});
  ExpectTypes(Make("Shard", {Floats({0})}, {{"world_size", int64_t{3}}}, 1), {"float[0]"});
  ExpectTypes(Make("Broadcast", {Input(DType::kInt64, {})}, {{"root", int64_t{0}}}, 1), {"int64[]"});
}

TEST_F(DistributedOps, CollectivesRefuseWhatDoesNotFit) {
  ExpectRefused(Make("ReduceScatter", {Floats({7})}, {{"world_size", int64_t{3}}}, 1),
                "7 elements do not divide into 3");
  ExpectRefused(Make("ReduceScatter", {Floats({2, 3})}, {{"world_size", int64_t{3}}}, 1), "must be of rank 1");
  ExpectRefused(Make("AllReduce", {Floats({2})}, {{"op", "product"}}, 1), "\"sum\" or \"max\"");
  ExpectRefused(Make("AllReduce", {Input(DType::kBool, {2})}, {}, 1), "floating type");
  ExpectRefused(Make("AllGather", {Floats({2})}, {}, 1), "needs attribute 'world_size'");
  ExpectRefused(Make("AllGather", {Floats({2})}, {{"world_size", int64_t{0}}}, 1), "at least 1");
  ExpectRefused(Make("AllReduce", {Floats({2})}, {{"group", int64_t{1}}}, 1), "no attribute 'group'");
  ExpectRefused(Make("AllReduce", {Floats({2})}, {{"op", int64_t{1}}}, 1), "of kind string, found int");
}

TEST_F(DistributedOps, OnlyCollectivesAreCollective) {
  for (const char* op : {"AllReduce", "ReduceScatter", "AllGather", "Broadcast"}) {
    EXPECT_TRUE(OpRegistry::Default().Find(std::string(kOwnPrefix) + op)->collective) << op;
  }
  for (const char* op : {"Shard", "BucketPack", "BucketUnpack", "SquaredNorm", "AdamW"}) {
    EXPECT_FALSE(OpRegistry::Default().Find(std::string(kOwnPrefix) + op)->collective) << op;
  }
}

TEST_F(DistributedOps, BucketsArePackedAndUnpackedInPlace) {
  const std::vector<int64_t> offsets{0, 64};
  const Node* pack = Make("BucketPack", {Floats({3}), Floats({2, 2})},
                          {{"bucket", int64_t{0}}, {"elements", int64_t{256}}, {"offsets", offsets}}, 1);
  ExpectTypes(pack, {"float[256]"});
  const std::vector<AliasRule> packed = pack->def().aliases(*pack);
  ASSERT_EQ(packed.size(), 2u);
  EXPECT_EQ(packed[1].kind, AliasRule::Kind::kPack);
  EXPECT_EQ(packed[1].input, 1);
  EXPECT_EQ(packed[1].offset, 256);  // bytes

  const std::vector<std::string> shapes{"3", "2,2"};
  const Node* unpack = Make("BucketUnpack", {pack->output(0)}, {{"offsets", offsets}, {"shapes", shapes}}, 2);
  ExpectTypes(unpack, {"float[3]", "float[2,2]"});
  const std::vector<AliasRule> views = unpack->def().aliases(*unpack);
  ASSERT_EQ(views.size(), 2u);
  EXPECT_EQ(views[1].kind, AliasRule::Kind::kView);
  EXPECT_EQ(views[1].output, 1);
  EXPECT_EQ(views[1].offset, 256);
}

TEST_F(DistributedOps, BucketsRefuseOverlapAndOverflow) {
  const auto pack = [&](std::vector<Value*> inputs, int64_t elements, std::vector<int64_t> offsets) {
    return Make("BucketPack", std::move(inputs), {{"elements", elements}, {"offsets", std::move(offsets)}}, 1);
  };
  ExpectRefused(pack({Floats({3}), Floats({3})}, 256, {0, 2}), "overlaps");
  ExpectRefused(pack({Floats({3}), Floats({3})}, 5, {0, 3}), "end at element 6, the bucket has 5");
  ExpectRefused(pack({Floats({3})}, 256, {0, 64}), "2 entries for 1 tensors");
  ExpectRefused(pack({Floats({3}), Input(DType::kDouble, {3})}, 256, {0, 64}), "one element type");
  const std::vector<int64_t> offsets{0};
  for (const char* shape : {"3,", "x", "-1", "3;4"}) {
    ExpectRefused(
        Make("BucketUnpack", {Floats({64})}, {{"offsets", offsets}, {"shapes", std::vector<std::string>{shape}}}, 1),
        "not a list of dimensions");
  }
}

TEST_F(DistributedOps, StepControlGivesScalars) {
  ExpectTypes(Make("StepSums", {Floats({}), Input(DType::kDouble, {1})}, {}, 2), {"double[3]", "int64[]"});
  ExpectTypes(Make("SquaredNorm", {Floats({3}), Input(DType::kDouble, {0})}, {}, 1), {"double[1]"});
  ExpectTypes(Make("StepControl", {Input(DType::kDouble, {4})}, {{"clip", 1.0f}}, 4),
              {"double[]", "double[]", "double[]", "bool[]"});
  ExpectTypes(Make("LearningRate", {Input(DType::kInt64, {})}, {{"lr", 0.1f}}, 1), {"double[]"});
  ExpectRefused(Make("StepSums", {Floats({2}), Floats({})}, {}, 2), "one element");
  ExpectRefused(Make("StepControl", {Input(DType::kDouble, {3})}, {}, 4), "must be double[4]");
  ExpectRefused(Make("StepControl", {Input(DType::kDouble, {4})}, {{"clip", -1.0f}}, 4), "not be negative");
  ExpectRefused(Make("LearningRate", {Input(DType::kInt64, {})}, {{"lr", 0.1f}, {"schedule", "cosine"}}, 1),
                "max_steps");
  ExpectRefused(Make("LearningRate", {Input(DType::kInt64, {})}, {{"lr", 0.1f}, {"schedule", "zigzag"}}, 1), "zigzag");
  ExpectRefused(Make("CountLabels", {Floats({2})}, {}, 1), "must be integers");
}

TEST_F(DistributedOps, OptimizersUpdateInPlace) {
  struct Case {
    const char* op;
    size_t moments;
  };
  for (const Case& c : {Case{"Adam", 2}, Case{"AdamW", 2}, Case{"Adagrad", 1}, Case{"Lion", 1}}) {
    SCOPED_TRACE(c.op);
    const Node* node = Make(c.op, OptimizerInputs(c.moments), {{"weight_decay", 0.1f}}, 1 + c.moments);
    ExpectTypes(node, std::vector<std::string>(1 + c.moments, "float[4]"));
    const std::vector<AliasRule> rules = node->def().aliases(*node);
    ASSERT_EQ(rules.size(), 1 + c.moments);
    for (size_t i = 1; i < rules.size(); ++i) {
      EXPECT_EQ(rules[i].kind, AliasRule::Kind::kInPlace);
      EXPECT_EQ(rules[i].output, static_cast<int>(i));
      EXPECT_EQ(rules[i].input, static_cast<int>(i) + 1);
    }
  }
}

TEST_F(DistributedOps, SgdHasItsMomentumOrNone) {
  std::vector<Value*> inputs = OptimizerInputs(1);
  ExpectTypes(Make("SGD", inputs, {{"momentum", 0.9f}}, 2), {"float[4]", "float[4]"});
  ExpectRefused(Make("SGD", inputs, {}, 2), "goes with a 'momentum' above 0");
  inputs[2] = nullptr;
  ExpectTypes(Make("SGD", inputs, {}, 1), {"float[4]"});
  ExpectRefused(Make("SGD", inputs, {{"momentum", 0.9f}}, 1), "goes with a 'momentum' above 0");
}

TEST_F(DistributedOps, OptimizersRefuseMixedForms) {
  const std::vector<float> two{0, 1};
  const std::vector<float> one{1};
  ExpectTypes(
      Make("AdamW", OptimizerInputs(2), {{"bucket", int64_t{0}}, {"weight_decays", two}, {"lr_multipliers", two}}, 3),
      {"float[4]", "float[4]", "float[4]"});
  ExpectRefused(Make("AdamW", OptimizerInputs(2), {{"bucket", int64_t{0}}}, 3), "lists");
  ExpectRefused(Make("AdamW", OptimizerInputs(2), {{"weight_decays", two}, {"lr_multipliers", two}}, 3),
                "go with attribute 'bucket'");
  ExpectRefused(
      Make("AdamW", OptimizerInputs(2), {{"bucket", int64_t{0}}, {"weight_decays", two}, {"lr_multipliers", one}}, 3),
      "differ in length");
  std::vector<Value*> inputs = OptimizerInputs(2);
  inputs[1] = Floats({5});
  ExpectRefused(Make("AdamW", inputs, {}, 3), "input 1 (gradient) must be float[4], found float[5]");
  inputs = OptimizerInputs(2);
  inputs[4] = Floats({});
  ExpectRefused(Make("AdamW", inputs, {}, 3), "input 4 (learning rate) must be double[]");
}

}  // namespace
}  // namespace onnxtrain
