// SPDX-License-Identifier: Apache-2.0
#include "graph/trainable_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/onnx_model.h"
#include "graph/op_registry.h"
#include "graph/tensor_pattern.h"

namespace onnxtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// All that the rule reads of an operator: the type of its output and the inputs that stop gradients.
OpDef Define(std::string name, std::vector<int> stops = {}, DType to = DType::kUndefined) {
  OpDef def;
  def.name = std::move(name);
  def.stop_gradient_inputs = std::move(stops);
  def.infer = [to](const InferContext& context) -> StatusOr<std::vector<TensorType>> {
    TensorType type = context.op == "Where" ? context.inputs[1] : context.inputs[0];
    if (to != DType::kUndefined) type.dtype = to;
    return std::vector<TensorType>(context.wanted.size(), type);
  };
  return def;
}

OpRegistry MakeRegistry() {
  OpRegistry registry;
  registry.Add(Define("MatMul"));
  registry.Add(Define("Add"));
  registry.Add(Define("Gather", {1}));
  registry.Add(Define("Reshape", {1}));
  registry.Add(Define("Equal", {}, DType::kBool));
  registry.Add(Define("Where"));
  registry.Add(Define("BatchNormalization", {3, 4}));
  registry.Add(Define("ReduceMean", {1}));
  return registry;
}

// A graph under construction with its initializers.
class TrainableSetTest : public ::testing::Test {
 protected:
  TrainableSetTest() : graph_(registry_) { x_ = graph_.AddInput("x", {DType::kFloat, {4, 4}}); }

  Value* Weight(const std::string& name, const std::string& label = "", Shape shape = {4, 4},
                DType dtype = DType::kFloat) {
    facts_.push_back({name, {dtype, shape}, "", label});
    return graph_.AddState(name, {dtype, shape});
  }
  Value* Op(const std::string& op, std::vector<Value*> inputs) {
    return (*graph_.Insert(nullptr, {op, std::move(inputs), {}, {"t"}, "", {}}))->output(0);
  }
  StatusOr<TrainableSet> Find(const Value* loss, const TrainableSetOptions& options = {}) {
    const std::vector<const Value*> losses = {loss};
    const ReadInitializer read = [this](const std::string& name) -> StatusOr<Tensor> {
      const auto found = contents_.find(name);
      return found == contents_.end() ? Tensor(graph_.FindValue(name)->type()) : found->second;
    };
    return FindTrainableSet(graph_, losses, facts_, read, options);
  }
  // "name verdict" of every tensor.
  std::vector<std::string> Verdicts(const Value* loss, TrainableSetOptions options = {}) {
    options.allow_empty = true;
    StatusOr<TrainableSet> set = Find(loss, options);
    EXPECT_TRUE(set.ok()) << set.status().message();
    std::vector<std::string> lines;
    for (const TensorVerdict& tensor : set->tensors) {
      EXPECT_FALSE(tensor.reason.empty());
      lines.push_back(tensor.name + " " + std::string(NameOf(tensor.verdict)));
    }
    return lines;
  }

  OpRegistry registry_ = MakeRegistry();
  Graph graph_;
  Value* x_ = nullptr;
  std::vector<InitializerFacts> facts_;
  std::map<std::string, Tensor> contents_;
};

TEST_F(TrainableSetTest, TakesWhatReachesTheLoss) {
  Value* h = Op("MatMul", {x_, Weight("fc.weight")});
  Value* y = Op("Add", {h, Weight("fc.bias", "", {4})});
  Op("MatMul", {y, Weight("aux.weight")});
  Weight("unused.weight");
  facts_.push_back({"left_out.weight", {DType::kFloat, {3}}, "", ""});  // the graph was cut before it
  EXPECT_THAT(Verdicts(y), ElementsAre("fc.weight trainable", "fc.bias trainable", "aux.weight constant",
                                       "unused.weight constant", "left_out.weight constant"));
}

TEST_F(TrainableSetTest, StopsWhereGradientsStop) {
  Value* mask = Op("Equal", {Weight("mask"), x_});
  Value* h = Op("Where", {mask, x_, Weight("fill")});
  Value* y = Op("Reshape", {h, Weight("shape", "", {2}, DType::kInt64)});
  EXPECT_THAT(Verdicts(y), ElementsAre("mask constant", "fill trainable", "shape constant"));
  EXPECT_EQ(NameOf(Verdict::kFrozen), "frozen");
  EXPECT_THAT(Find(y)->Find("shape")->reason, HasSubstr("int64[2] has no gradient"));
}

TEST_F(TrainableSetTest, RunningStatisticsAreBuffers) {
  Value* y = Op("BatchNormalization", {x_, Weight("bn.weight", "", {4}), Weight("bn.bias", "", {4}),
                                       Weight("a", "", {4}), Weight("b", "", {4})});
  EXPECT_THAT(Verdicts(y), ElementsAre("bn.weight trainable", "bn.bias trainable", "a buffer", "b buffer"));
}

TEST_F(TrainableSetTest, NamesOfBuffers) {
  Value* y = Op("Add", {x_, Weight("rotary.inv_freq", "", {4})});
  y = Op("Add", {y, Weight("h.0.attn.bias", "", {1, 1, 4, 4})});
  y = Op("Add", {y, Weight("attn.bias", "", {4})});
  y = Op("Add", {y, Weight("inv_freq", "PARAMETER", {4})});
  EXPECT_THAT(Verdicts(y), ElementsAre("rotary.inv_freq buffer", "h.0.attn.bias buffer", "attn.bias constant",
                                       "inv_freq trainable"));
  facts_.pop_back();  // without a label in the file, a bias of rank 1 trains
  EXPECT_THAT(Verdicts(y), ElementsAre("rotary.inv_freq buffer", "h.0.attn.bias buffer", "attn.bias trainable"));
}

TEST_F(TrainableSetTest, LabelsDecideWhereThereAreAny) {
  Value* y = Op("MatMul", {x_, Weight("w", "PARAMETER")});
  y = Op("Add", {y, Weight("scale", "PARAMETER", {})});
  y = Op("Add", {y, Weight("table", "BUFFER")});
  y = Op("MatMul", {y, Weight("val_9")});
  y = Op("Add", {y, Weight("embedding_1")});
  EXPECT_THAT(Verdicts(y),
              ElementsAre("w trainable", "scale trainable", "table buffer", "val_9 trainable", "embedding_1 constant"));
}

TEST_F(TrainableSetTest, ScalarsAndFoldedConstantsStay) {
  Value* y = Op("Add", {x_, Weight("embed_scale", "", {})});
  y = Op("Add", {y, Weight("val_12", "", {4})});
  y = Op("Add", {y, Weight("val_14", "", {4})});
  y = Op("MatMul", {y, Weight("val_13")});
  y = Op("Add", {y, Weight("val_bias", "", {4})});
  y = Op("Add", {y, Weight("unsqueeze_3", "", {4})});
  y = Op("Add", {y, Weight("zeros", "", {4})});
  y = Op("MatMul", {y, Weight("div")});
  y = Op("Add", {y, Weight("embedding")});
  y = Op("Add", {y, Weight("embedding_1")});
  contents_["val_14"] = Tensor::FromVector<float>({4}, {1, 1, 1, 2});
  EXPECT_THAT(Verdicts(y),
              ElementsAre("embed_scale constant", "val_12 constant", "val_14 trainable", "val_13 trainable",
                          "val_bias trainable", "unsqueeze_3 constant", "zeros constant", "div trainable",
                          "embedding trainable", "embedding_1 constant"));
}

TEST_F(TrainableSetTest, ContentsTellMasksAndTables) {
  Value* y = Op("Add", {x_, Weight("causal")});
  y = Op("Add", {y, Weight("all_zero")});
  y = Op("Add", {y, Op("Gather", {Weight("positions"), x_})});
  y = Op("MatMul", {y, Weight("ones_and_zeros")});  // a weight, however odd: a layer multiplies by it
  const float low = -std::numeric_limits<float>::infinity();
  contents_["causal"] = Tensor::FromVector<float>({4, 4}, {0, low, low, low, 0, 0, low, low, 0, 0, 0, low, 0, 0, 0, 0});
  contents_["ones_and_zeros"] = Tensor::FromVector<float>({4, 4}, {1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1});
  std::vector<float> table;
  for (int p = 0; p < 4; ++p) {
    for (const float f : {1.0f, 0.01f}) {
      table.push_back(std::sin(static_cast<float>(p) * f));
      table.push_back(std::cos(static_cast<float>(p) * f));
    }
  }
  contents_["positions"] = Tensor::FromVector<float>({4, 4}, table);
  EXPECT_THAT(Verdicts(y),
              ElementsAre("causal constant", "all_zero trainable", "positions constant", "ones_and_zeros trainable"));
}

TEST_F(TrainableSetTest, TrainableGlobsNameTheWholeSet) {
  Value* y = Op("MatMul", {x_, Weight("a.weight")});
  y = Op("MatMul", {y, Weight("b/c::weight")});
  y = Op("Add", {y, Weight("scale", "", {})});
  TrainableSetOptions options;
  options.trainable = {"*c::w*", "scale"};
  EXPECT_THAT(Verdicts(y, options), ElementsAre("a.weight frozen", "b/c::weight trainable", "scale trainable"));
  options.freeze = {"*weight"};
  EXPECT_THAT(Verdicts(y, options), ElementsAre("a.weight frozen", "b/c::weight frozen", "scale trainable"));
  options.trainable.clear();
  EXPECT_THAT(Verdicts(y, options), ElementsAre("a.weight frozen", "b/c::weight frozen", "scale constant"));
  EXPECT_THAT(Find(y, {{}, {"a*"}, false})->Trainable(), ElementsAre("b/c::weight"));
}

TEST_F(TrainableSetTest, RefusesGlobsThatCannotBeHonoured) {
  Value* y = Op("MatMul", {x_, Weight("fc.weight")});
  Weight("fc.unused");
  const auto error = [&](const TrainableSetOptions& options) {
    StatusOr<TrainableSet> set = Find(y, options);
    EXPECT_FALSE(set.ok());
    return set.status();
  };
  EXPECT_EQ(error({{"fc.wieght"}, {}, false}).code(), StatusCode::kUsage);
  EXPECT_THAT(error({{"fc.wieght"}, {}, false}).message(), HasSubstr("did you mean 'fc.weight'?"));
  EXPECT_EQ(error({{}, {"nothing*"}, false}).code(), StatusCode::kUsage);
  EXPECT_EQ(error({{"*unused"}, {}, false}).code(), StatusCode::kInvalidModel);
  EXPECT_THAT(error({{"*unused"}, {}, false}).message(), HasSubstr("the loss does not depend on it"));
  EXPECT_EQ(error({{}, {"*"}, false}).code(), StatusCode::kInvalidModel);
  EXPECT_THAT(error({{}, {"*"}, false}).message(), HasSubstr("nothing trains"));
  StatusOr<TrainableSet> both = Find(y, {{"fc.*"}, {}, false});
  ASSERT_TRUE(both.ok());
  EXPECT_THAT(both->Trainable(), ElementsAre("fc.weight"));
  ASSERT_EQ(both->notes.size(), 1u);
  EXPECT_THAT(both->notes[0], HasSubstr("'fc.unused' cannot train"));
}

TEST_F(TrainableSetTest, ModelWithoutInitializers) {
  const Value* y = Op("Add", {x_, x_});
  EXPECT_EQ(Find(y).status().code(), StatusCode::kInvalidModel);
  EXPECT_TRUE(Verdicts(y).empty());
}

TEST(TrainableSet, ReadsLabelsOfTheModel) {
  StatusOr<OnnxModel> model = OnnxModel::ParseText(R"(<ir_version: 10, opset_import: ["" : 18]>
g (float[2] x) => (float[2] y)
<float[2] w = {1, 2}, float[2] b = {3, 4}>
{
  p = Mul(x, w)
  y = Add(p, b)
})",
                                                   "", "model.onnxtxt");
  ASSERT_TRUE(model.ok()) << model.status().message();
  const std::vector<InitializerFacts> facts = FactsOf(*model);
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts[0].name, "w");
  EXPECT_EQ(facts[1].type, (TensorType{DType::kFloat, {2}}));
  EXPECT_EQ(facts[0].label, "");
}

TEST(TensorPattern, Uniform) {
  EXPECT_TRUE(IsUniform(Tensor::FromVector<float>({3}, {2, 2, 2})));
  EXPECT_FALSE(IsUniform(Tensor::FromVector<float>({3}, {2, 2, 3})));
  EXPECT_TRUE(IsUniform(Tensor::Scalar(1.0f)));
  EXPECT_TRUE(IsUniform(Tensor(TensorType{DType::kFloat, {0}})));
}

TEST(TensorPattern, Masks) {
  const auto mask = [](Shape shape, std::vector<float> values) {
    return LooksLikeMask(Tensor::FromVector<float>(std::move(shape), values));
  };
  EXPECT_TRUE(mask({1, 1, 2, 2}, {1, 0, 1, 1}));
  EXPECT_TRUE(mask({2, 2}, {0, -65504, 0, 0}));
  EXPECT_FALSE(mask({2, 2}, {0, 0, 0, 0}));
  EXPECT_FALSE(mask({2, 2}, {1, 1, 1, 1}));
  EXPECT_FALSE(mask({2, 2}, {0, 1, -65504, 0}));
  EXPECT_FALSE(mask({2, 2}, {0, 1, 0.5, 0}));
  EXPECT_FALSE(mask({4}, {0, 1, 0, 1}));
  EXPECT_FALSE(mask({1, 4}, {0, 1, 0, 1}));
  EXPECT_FALSE(LooksLikeMask(Tensor(TensorType{DType::kFloat, {0, 0}})));
}

TEST(TensorPattern, Sinusoids) {
  const auto table = [](int rows, bool halves, double noise) {
    std::vector<float> values;
    for (int p = 0; p < rows; ++p) {
      for (int j = 0; j < 6; ++j) {
        const int pair = halves ? j % 3 : j / 2;
        const bool cosine = halves ? j >= 3 : j % 2 == 1;
        const double angle = p * std::pow(10000.0, -pair / 3.0);
        values.push_back(static_cast<float>((cosine ? std::cos(angle) : std::sin(angle)) + (p == 1 ? noise : 0)));
      }
    }
    return Tensor::FromVector<float>({1, rows, 6}, values);
  };
  EXPECT_TRUE(LooksLikeSinusoids(table(1500, true, 0)));
  EXPECT_TRUE(LooksLikeSinusoids(table(7, false, 0)));
  EXPECT_FALSE(LooksLikeSinusoids(table(7, false, 0.1)));
  EXPECT_FALSE(LooksLikeSinusoids(table(2, true, 0)));
  EXPECT_FALSE(LooksLikeSinusoids(Tensor(TensorType{DType::kFloat, {4, 4}})));
  EXPECT_FALSE(LooksLikeSinusoids(Tensor(TensorType{DType::kFloat, {0, 4}})));
  EXPECT_FALSE(LooksLikeSinusoids(Tensor(TensorType{DType::kFloat, {4}})));
}

}  // namespace
}  // namespace onnxtrain
