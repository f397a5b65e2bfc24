// SPDX-License-Identifier: Apache-2.0
// The trainable set of real exports, against what PyTorch says of the same modules. The files lie beside a development
// checkout and are not part of the repository.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/onnx_reader.h"
#include "graph/trainable_set.h"

namespace onnxtrain {
namespace {

using ::testing::UnorderedElementsAreArray;
using Json = nlohmann::json;

const std::filesystem::path kShared = std::filesystem::path(ONNXTRAIN_SOURCE_DIR) / ".." / "shared";

TensorType TypeOf(const Json& input) {
  const std::map<std::string, DType> kTypes = {{"float32", DType::kFloat},
                                               {"float64", DType::kDouble},
                                               {"int64", DType::kInt64},
                                               {"int32", DType::kInt32},
                                               {"bool", DType::kBool}};
  return {kTypes.at(input.at("dtype")), input.at("shape").get<Shape>()};
}

bool IsFloatInitializer(const ModelInitializer& initializer) { return IsFloating(initializer.type.dtype); }

StatusOr<TrainableSet> SetOf(const std::filesystem::path& file, const std::map<std::string, TensorType>& inputs,
                             const std::string& loss, const TrainableSetOptions& options = {}) {
  ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Load(file.string()));
  SpecializeOptions specialize;
  for (const ModelValue& input : model.inputs()) {
    const auto found = inputs.find(input.name);
    if (found != inputs.end()) specialize.inputs.insert(*found);
  }
  specialize.is_state = IsFloatInitializer;
  specialize.outputs = {loss};
  ASSIGN_OR_RETURN(const Graph graph, Specialize(model, specialize));
  const std::vector<const Value*> losses = {graph.FindValue(loss)};
  return FindTrainableSet(graph, losses, model, options);
}

Json ReadCase(const std::filesystem::path& folder) {
  std::ifstream file(folder / "case.json");
  return Json::parse(file);
}

// "missing a, b; extra c", or "" for equal sets.
std::string Difference(std::vector<std::string> found, std::vector<std::string> expected) {
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  std::vector<std::string> missing;
  std::vector<std::string> extra;
  std::set_difference(expected.begin(), expected.end(), found.begin(), found.end(), std::back_inserter(missing));
  std::set_difference(found.begin(), found.end(), expected.begin(), expected.end(), std::back_inserter(extra));
  std::string text;
  for (const std::string& name : missing) text += " missing " + name;
  for (const std::string& name : extra) text += " extra " + name;
  return text;
}

TEST(ExportedModels, TrainableSetIsPyTorchs) {
  if (!std::filesystem::exists(kShared / "zoo")) GTEST_SKIP() << "no ../shared/zoo beside the checkout";
  int exact = 0;
  int total = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kShared / "zoo")) {
    if (!std::filesystem::exists(entry.path() / "case.json")) continue;
    const Json model = ReadCase(entry.path());
    std::map<std::string, TensorType> inputs;
    for (const auto& [name, input] : model.at("inputs").items()) inputs[name] = TypeOf(input);
    for (const char* exporter : {"ts", "dynamo"}) {
      if (!model.contains(exporter)) continue;
      const Json& graph = model.at(exporter);
      const std::string name = entry.path().filename().string() + "/" + exporter;
      ++total;
      StatusOr<TrainableSet> set = SetOf(entry.path() / graph.at("file").get<std::string>(), inputs,
                                         model.at("loss").at("output").get<std::string>());
      if (!set.ok()) {
        ADD_FAILURE() << name << ": " << set.status().message();
        continue;
      }
      const std::string difference = Difference(set->Trainable(), graph.at("trainable"));
      EXPECT_EQ(difference, "") << name;
      exact += difference.empty() ? 1 : 0;
    }
  }
  EXPECT_GT(total, 0);
  std::printf("%d of %d trainable sets are exact\n", exact, total);
}

TEST(ExportedModels, MasksOfTheGptDoNotTrain) {
  const std::filesystem::path folder = kShared / "models" / "gpt_tiny";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared/models beside the checkout";
  const std::map<std::string, TensorType> inputs = {{"idx", {DType::kInt64, {2, 64}}},
                                                    {"targets", {DType::kInt64, {2, 64}}}};
  for (const char* file : {"model.onnx", "model_dynamo.onnx"}) {
    StatusOr<TrainableSet> set = SetOf(folder / file, inputs, "loss");
    ASSERT_TRUE(set.ok()) << set.status().message();
    for (const TensorVerdict& tensor : set->tensors) {
      const bool mask = tensor.name.find("attn.mask") != std::string::npos;
      EXPECT_EQ(tensor.verdict == Verdict::kTrainable, !mask) << tensor.name << ": " << tensor.reason;
    }
    EXPECT_EQ(set->Trainable().size(), 48u);
  }
}

TEST(ExportedModels, FrozenAndUnusedWeights) {
  const std::filesystem::path folder = kShared / "models" / "frozen_tied";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared/models beside the checkout";
  const std::map<std::string, TensorType> inputs = {{"idx", {DType::kInt64, {12, 6}}},
                                                    {"labels", {DType::kInt64, {12}}}};
  StatusOr<TrainableSet> set = SetOf(folder / "model.onnx", inputs, "loss");
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_THAT(set->Trainable(),
              UnorderedElementsAreArray({"embed.weight", "fixed.weight", "fixed.bias", "mix.weight", "mix.bias"}));
  EXPECT_EQ(set->Find("aux.weight")->verdict, Verdict::kConstant);
  EXPECT_EQ(set->Find("unused.weight")->verdict, Verdict::kConstant);
  set = SetOf(folder / "model.onnx", inputs, "loss", {{}, {"fixed.*"}, false});
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_THAT(set->Trainable(), UnorderedElementsAreArray({"embed.weight", "mix.weight", "mix.bias"}));
  EXPECT_EQ(set->Find("fixed.bias")->verdict, Verdict::kFrozen);
}

}  // namespace
}  // namespace onnxtrain
