// SPDX-License-Identifier: Apache-2.0
#include "graph/onnx_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "graph/inference_export.h"
#include "graph/onnx_reader.h"
#include "graph/program_text.h"

namespace onnxtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

namespace fs = std::filesystem;

class OnnxFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("onnx_writer_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  static onnx::ModelProto ReadProto(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    onnx::ModelProto model;
    EXPECT_TRUE(model.ParseFromIstream(&file)) << path;
    return model;
  }

  // Exports the text of a model and reads what was written.
  StatusOr<OnnxModel> Export(const std::string& text, const InferenceExportOptions& options = {},
                             const std::map<std::string, const Tensor*>& updated = {}) const {
    StatusOr<OnnxModel> model = OnnxModel::ParseText("<ir_version: 8, opset_import: [\"\" : 17]>" + text, "", "m");
    if (!model.ok()) return model.status();
    RETURN_IF_ERROR(ExportInference(*model, options, updated, Path("out.onnx")));
    onnx::checker::check_model(ReadProto(Path("out.onnx")));
    return OnnxModel::Load(Path("out.onnx"));
  }

  fs::path folder_;
};

template <typename List>
std::vector<std::string> Names(const List& list) {
  std::vector<std::string> names;
  for (const auto& item : list) names.push_back(item.name);
  return names;
}

std::vector<std::string> Ops(const OnnxModel& model) {
  std::vector<std::string> ops;
  for (const ModelNode& node : model.nodes()) ops.push_back(node.op);
  return ops;
}

TEST_F(OnnxFiles, AProgramIsWrittenWithItsMetadata) {
  const StatusOr<Program> program = ReadProgramText(R"(
    <metadata_props: ["state.w" : "parameter", "state.m" : "optimizer_state moment1/w", "update.w" : "y", "role.loss" : "y"]>
    step (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] m, float[2] k = {3, 4}> {
      t = Mul (x, w) u = Add (t, m) y = onnxtrain.AllReduce <op = "sum"> (u) })");
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_EQ(WriteOnnx(*program, "step", Path("train.onnx")).message(), "");
  const StatusOr<OnnxModel> model = OnnxModel::Load(Path("train.onnx"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_THAT(Ops(*model), ElementsAre("Mul", "Add", "onnxtrain.AllReduce"));
  EXPECT_THAT(Names(model->inputs()), ElementsAre("x"));
  EXPECT_THAT(Names(model->initializers()), UnorderedElementsAre("w", "m", "k"));
  EXPECT_EQ(model->Initializer("w")->DoubleAt(1), 2);
  EXPECT_EQ(model->Initializer("m")->DoubleAt(1), 0);
  const onnx::ModelProto proto = ReadProto(Path("train.onnx"));
  std::map<std::string, std::string> metadata;
  for (const auto& entry : proto.metadata_props()) metadata[entry.key()] = entry.value();
  EXPECT_EQ(metadata["state.m"], "optimizer_state moment1/w");
  EXPECT_EQ(metadata["update.w"], "y");
  EXPECT_EQ(metadata["role.loss"], "y");
}

constexpr char kClassifier[] = R"(
    g (float[B,2] x, int64[B] labels) => (float loss LOGITS)
    <float[2,3] w = {1, 2, 3, 4, 5, 6}, float[3] s = {1, 1, 1}, float ratio = {0.5}, bool on = {1}, float[3] weight = {1, 2, 1}> {
      h = MatMul (x, w)
      n, mean, var = BatchNormalization <training_mode = 1> (h, s, s, s, s)
      logits = Dropout (n, ratio, on)
      loss = SoftmaxCrossEntropyLoss (logits, labels, weight)
    })";

std::string Classifier(const char* logits) {
  std::string text = kClassifier;
  return text.replace(text.find(" LOGITS"), 7, logits);
}

TEST_F(OnnxFiles, TheLossAndItsLabelsGo) {
  const Tensor s = Tensor::FromVector<float>({3}, {7, 8, 9});
  const Tensor weight = Tensor::FromVector<float>({3}, {0, 0, 0});
  const StatusOr<OnnxModel> model = Export(Classifier(", float[B,3] logits"), {}, {{"s", &s}, {"weight", &weight}});
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_THAT(Names(model->inputs()), ElementsAre("x"));
  EXPECT_THAT(Names(model->outputs()), ElementsAre("logits"));
  EXPECT_THAT(Names(model->initializers()), ElementsAre("w", "s", "ratio"));
  EXPECT_EQ(model->Initializer("s")->DoubleAt(2), 9);
  EXPECT_THAT(Ops(*model), ElementsAre("MatMul", "BatchNormalization", "Dropout"));
  for (const ModeNode& node : model->mode_nodes()) EXPECT_FALSE(node.training) << node.name;
  EXPECT_EQ(model->nodes()[1].outputs.size(), 1u);
  EXPECT_EQ(model->nodes()[2].inputs.size(), 2u);
}

TEST_F(OnnxFiles, WhatFedTheLossBecomesTheOutput) {
  const StatusOr<OnnxModel> model = Export(Classifier(""));
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_THAT(Names(model->outputs()), ElementsAre("logits"));
  EXPECT_EQ(model->outputs()[0].dtype, DType::kFloat);
}

constexpr char kRegression[] = R"(
    g (float[4,2] x, float[4,2] target) => (float loss)
    <float[2,2] w = {1, 2, 3, 4}, float two = {2}> {
      h = MatMul (x, w)
      prediction = Add (h, x)
      d = Sub (prediction, target)
      q = Pow (d, two)
      loss = ReduceMean <keepdims = 0> (q)
    })";

TEST_F(OnnxFiles, PredictionsAreWhatLabelsAreComparedWith) {
  const StatusOr<OnnxModel> model = Export(kRegression, {.loss = "loss"});
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_THAT(Names(model->outputs()), ElementsAre("prediction"));
  EXPECT_THAT(Names(model->inputs()), ElementsAre("x"));
  EXPECT_THAT(Ops(*model), ElementsAre("MatMul", "Add"));
}

TEST_F(OnnxFiles, MasksOfTheLossAreLabels) {
  const StatusOr<OnnxModel> model = Export(R"(
    g (float[2] x, float[2] target, float[2] mask) => (float loss) <float[2,2] w = {1, 2, 3, 4}> {
      h = MatMul (x, w) d = Sub (h, target) q = Mul (d, d) m = Mul (q, mask) loss = ReduceSum <keepdims = 0> (m) })",
                                           {.loss = "loss"});
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_THAT(Names(model->outputs()), ElementsAre("h"));
}

TEST_F(OnnxFiles, TargetsMayBeDataToo) {
  const StatusOr<OnnxModel> model = Export(R"(
    g (float[2] x) => (float loss) <float[2,2] w = {1, 2, 3, 4}> {
      h = MatMul (x, w) r = Tanh (h) d = Sub (x, r) a = Abs (d) loss = ReduceMean <keepdims = 0> (a) })",
                                           {.loss = "loss"});
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_THAT(Names(model->outputs()), ElementsAre("r"));
}

TEST_F(OnnxFiles, MasksAreNoLabels) {
  const StatusOr<OnnxModel> model = Export(R"(
    g (float[2] x, float[2] mask) => (float loss) <float[2,2] w = {1, 2, 3, 4}> {
      h = MatMul (x, w) m = Mul (h, mask) o = MatMul (m, w) loss = ReduceSum <keepdims = 0> (o) })",
                                           {.loss = "loss"});
  EXPECT_THAT(model.status().message(), HasSubstr("cannot be told from its labels"));
}

TEST_F(OnnxFiles, AModelWithoutLossKeepsItsOutputs) {
  const std::string text = "g (float[2] x, float[2] unused) => (float[2] y) <float[2] w = {1, 2}> { y = Mul (x, w) }";
  const StatusOr<OnnxModel> model = Export(text);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_THAT(Names(model->outputs()), ElementsAre("y"));
  EXPECT_THAT(Names(model->inputs()), ElementsAre("x", "unused"));
  const Status status = Export(text, {.loss = "z"}).status();
  EXPECT_EQ(status.code(), StatusCode::kUsage);
  EXPECT_THAT(status.message(), HasSubstr("no output 'z'"));
}

}  // namespace
}  // namespace onnxtrain
