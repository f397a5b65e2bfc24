// SPDX-License-Identifier: Apache-2.0
// Level L2: the convolutions of real models, planned by cuDNN itself for an H200, on any machine. The golden
// cudnn_h200.txt lists engine and workspace of each: one that is no longer served, or wants more, shows in its diff.
// UPDATE_GOLDEN=1 writes it; engines are those of one version of the library, which its first line names.
#include <cudnn_version.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cuda_ops/convolution_library.h"
#include "cuda_ops/cudnn_convolution.h"
#include "graph/onnx_reader.h"
#include "tests/cuda/h200_properties.h"
#include "tests/support/status_matchers.h"

#ifdef __SANITIZE_ADDRESS__
// Without a GPU the library drops what its engines have begun to make.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

namespace onnxtrain {
namespace {

const std::filesystem::path kShared = std::filesystem::path(ONNXTRAIN_SOURCE_DIR) / ".." / "shared";
const std::string kGolden = std::string(ONNXTRAIN_SOURCE_DIR) + "/tests/cuda/cudnn_h200.txt";

constexpr ConvolutionDirection kDirections[] = {ConvolutionDirection::kForward, ConvolutionDirection::kInputGradient,
                                                ConvolutionDirection::kWeightGradient};
constexpr DType kTypes[] = {DType::kFloat, DType::kBfloat16, DType::kFloat16};

ConvolutionProblem Square(int64_t batch, int64_t channels, int64_t filters, int64_t size, int64_t kernel,
                          int64_t stride, int64_t groups = 1) {
  ConvolutionProblem p;
  p.batch = batch;
  p.channels = channels;
  p.filters = filters;
  p.groups = groups;
  const int64_t pad = kernel / 2;
  const int64_t output = (size + 2 * pad - kernel) / stride + 1;
  p.input = {size, size};
  p.output = {output, output};
  p.window = {{kernel, kernel}, {stride, stride}, {1, 1}, {pad, pad}, {pad, pad}};
  return p;
}

// ResNet-50 v1.5 on 224 by 224 pixels: the stem, and of each stage the bottleneck with and without its projection.
std::vector<ConvolutionProblem> ResNet50(int64_t batch) {
  std::vector<ConvolutionProblem> problems = {Square(batch, 3, 64, 224, 7, 2)};
  int64_t channels = 64, size = 56;
  for (const int64_t width : {64, 128, 256, 512}) {
    const int64_t stride = width == 64 ? 1 : 2;
    problems.push_back(Square(batch, channels, width, size, 1, 1));
    problems.push_back(Square(batch, width, width, size, 3, stride));
    problems.push_back(Square(batch, channels, 4 * width, size, 1, stride));
    size /= stride;
    channels = 4 * width;
    problems.push_back(Square(batch, width, channels, size, 1, 1));
    problems.push_back(Square(batch, channels, width, size, 1, 1));
    problems.push_back(Square(batch, width, width, size, 3, 1));
  }
  return problems;
}

// Depthwise, with odd sizes, dilated, one axis, three axes.
std::vector<ConvolutionProblem> Others() {
  std::vector<ConvolutionProblem> problems = {Square(32, 32, 32, 112, 3, 1, 32), Square(32, 144, 144, 56, 3, 2, 144),
                                              Square(7, 5, 9, 13, 3, 2), Square(64, 1, 8, 28, 5, 1)};
  ConvolutionProblem line;
  line.batch = 8;
  line.channels = 16;
  line.filters = 32;
  line.input = {128};
  line.output = {124};
  line.window = {{3}, {1}, {2}, {0}, {0}};
  problems.push_back(line);
  ConvolutionProblem volume;
  volume.batch = 2;
  volume.channels = 4;
  volume.filters = 8;
  volume.input = {8, 16, 16};
  volume.output = {8, 16, 16};
  volume.window = {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  problems.push_back(volume);
  return problems;
}

class CudnnGraphs : public testing::Test {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<CudnnDevice>> device = CudnnDevice::FromJson(kH200Properties);
    ASSERT_OK(device.status());
    device_ = std::move(*device);
  }

  StatusOr<std::unique_ptr<CudnnPlan>> Plan(const ConvolutionProblem& problem, const CudnnPlanOptions& options = {}) {
    ASSIGN_OR_RETURN(CudnnGraph graph, ConvolutionGraph(problem));
    return CudnnPlan::Create(*device_, std::move(graph), options);
  }

  // "convolution ...: engine 7, 1024 bytes", or the reason why there is none.
  std::string Line(const ConvolutionProblem& problem) {
    const auto plan = Plan(problem);
    if (!plan.ok()) return problem.ToString() + ": " + plan.status().message();
    return problem.ToString() + ": engine " + std::to_string((*plan)->engine()) + ", " +
           std::to_string((*plan)->workspace_bytes()) + " bytes";
  }

  std::unique_ptr<CudnnDevice> device_;
};

TEST_F(CudnnGraphs, ConvolutionsArePlannedForAnH200) {
  std::string text = ConvolutionLibrary::Version() + " for NVIDIA H200\n";
  std::vector<ConvolutionProblem> problems = ResNet50(64);
  const std::vector<ConvolutionProblem> others = Others();
  problems.insert(problems.end(), others.begin(), others.end());
  for (ConvolutionProblem& problem : problems) {
    for (const DType dtype : kTypes) {
      for (const ConvolutionDirection direction : kDirections) {
        problem.dtype = dtype;
        problem.direction = direction;
        text += Line(problem) + '\n';
      }
    }
  }
  const char* update = std::getenv("UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") std::ofstream(kGolden) << text;
  std::ifstream file(kGolden);
  std::stringstream golden;
  golden << file.rdbuf();
  std::string first;
  std::getline(golden, first);
  if (first != text.substr(0, text.find('\n'))) {
    GTEST_SKIP() << "the golden is of " << first << ", the library here is " << ConvolutionLibrary::Version();
  }
  EXPECT_EQ(text, golden.str());
  EXPECT_EQ(text.find("has no engine"), std::string::npos);
}

std::vector<ConvolutionProblem> ConvolutionsOf(const Graph& graph) {
  std::vector<ConvolutionProblem> problems;
  for (const auto& node : graph.nodes()) {
    if (node->op() != "Conv") continue;
    const Shape& x = node->input(0)->type().shape;
    const Shape& w = node->input(1)->type().shape;
    const Shape& y = node->output(0)->type().shape;
    const StatusOr<Window> window = WindowOf(node->attributes(), SpatialOf(x), SpatialOf(w));
    EXPECT_OK(window.status());
    problems.push_back({ConvolutionDirection::kForward, DType::kFloat, x[0], x[1], y[1],
                        node->attributes().Int("group", 1), SpatialOf(x), SpatialOf(y), *window});
  }
  return problems;
}

StatusOr<Graph> GraphOf(const std::filesystem::path& folder, const nlohmann::json& description) {
  const std::map<std::string, DType> types = {{"float32", DType::kFloat}, {"float64", DType::kDouble},
                                              {"int64", DType::kInt64},   {"int32", DType::kInt32},
                                              {"bool", DType::kBool}};
  ASSIGN_OR_RETURN(const OnnxModel model,
                   OnnxModel::Load((folder / description.at("ts").at("file").get<std::string>()).string()));
  SpecializeOptions specialize;
  for (const auto& [name, input] : description.at("inputs").items()) {
    specialize.inputs[name] = {types.at(input.at("dtype")), input.at("shape").get<Shape>()};
  }
  specialize.is_state = [](const ModelInitializer& initializer) { return IsFloating(initializer.type.dtype); };
  return Specialize(model, specialize);
}

TEST_F(CudnnGraphs, EveryConvolutionOfTheZooHasAnEngine) {
  if (!std::filesystem::exists(kShared / "zoo")) GTEST_SKIP() << "no ../shared/zoo beside the checkout";
  int convolutions = 0, models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kShared / "zoo")) {
    std::ifstream file(entry.path() / "case.json");
    if (!file) continue;
    const nlohmann::json description = nlohmann::json::parse(file);
    if (!description.contains("ts")) continue;
    const StatusOr<Graph> graph = GraphOf(entry.path(), description);
    if (!graph.ok()) continue;  // the reader's own tests say why
    const std::vector<ConvolutionProblem> problems = ConvolutionsOf(*graph);
    models += problems.empty() ? 0 : 1;
    for (ConvolutionProblem problem : problems) {
      for (const DType dtype : kTypes) {
        for (const ConvolutionDirection direction : kDirections) {
          problem.dtype = dtype;
          problem.direction = direction;
          EXPECT_TRUE(IsOk(Plan(problem).status())) << entry.path().filename();
          ++convolutions;
        }
      }
    }
  }
  EXPECT_GT(models, 10);
  std::printf("%d convolutions of %d models planned\n", convolutions, models);
}

TEST_F(CudnnGraphs, WithoutTf32NoEngineRoundsFloats) {
  const ConvolutionProblem problem = Square(64, 64, 64, 56, 3, 1);
  CudnnPlanOptions tf32;
  tf32.tf32 = true;
  const auto exact = Plan(problem);
  const auto rounded = Plan(problem, tf32);
  ASSERT_OK(exact.status());
  ASSERT_OK(rounded.status());
  EXPECT_NE((*exact)->engine(), (*rounded)->engine());
}

TEST_F(CudnnGraphs, PlansComeBackFromJson) {
  const auto plan = Plan(Square(8, 16, 16, 28, 3, 1));
  ASSERT_OK(plan.status());
  const StatusOr<std::string> json = (*plan)->ToJson();
  ASSERT_OK(json.status());
  const auto again = CudnnPlan::FromJson(*device_, *json);
  ASSERT_OK(again.status());
  EXPECT_EQ((*again)->workspace_bytes(), (*plan)->workspace_bytes());
  EXPECT_FALSE(CudnnPlan::FromJson(*device_, json->substr(0, json->size() / 2)).ok());
}

TEST_F(CudnnGraphs, AWorkspaceAboveTheLimitIsNotTaken) {
  CudnnPlanOptions small;
  small.most_workspace = 0;
  const auto plan = Plan(Square(64, 64, 64, 56, 3, 1), small);
  ASSERT_OK(plan.status());
  EXPECT_EQ((*plan)->workspace_bytes(), 0u);
}

TEST_F(CudnnGraphs, ErrorsAreTheLibrarysWords) {
  ConvolutionProblem problem = Square(8, 16, 16, 28, 3, 1);
  problem.output = {27, 27};
  const StatusOr<CudnnGraph> graph = ConvolutionGraph(problem);
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.status().message().find("CUDNN_STATUS_BAD_PARAM"), std::string::npos) << graph.status().message();
  EXPECT_FALSE(CudnnDevice::FromJson("{}").ok());
}

}  // namespace
}  // namespace onnxtrain
