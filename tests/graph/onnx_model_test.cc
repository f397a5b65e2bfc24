// SPDX-License-Identifier: Apache-2.0
#include "graph/onnx_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "graph/model_contents.h"

namespace onnxtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class OnnxModelFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("onnx_model_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void WriteFile(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }
  static std::string ReadFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  fs::path folder_;
};

// y = x W + b, with every kind of payload and metadata.
onnx::ModelProto LinearModel() {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.set_producer_name("pytorch");
  model.set_producer_version("2.6.0");
  model.add_opset_import()->set_version(17);
  onnx::GraphProto* graph = model.mutable_graph();
  graph->set_name("main");
  onnx::ValueInfoProto* x = graph->add_input();
  x->set_name("x");
  auto* type = x->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_param("batch");
  type->mutable_shape()->add_dim()->set_dim_value(2);
  graph->add_output()->set_name("y");
  onnx::TensorProto* w = graph->add_initializer();
  w->set_name("W");
  w->set_data_type(onnx::TensorProto::FLOAT);
  w->add_dims(2);
  w->add_dims(3);
  const float weights[6] = {1, 2, 3, 4, 5, 6};
  w->set_raw_data(weights, sizeof(weights));
  onnx::TensorProto* b = graph->add_initializer();
  b->set_name("b");
  b->set_data_type(onnx::TensorProto::FLOAT);
  b->add_dims(3);
  for (const float value : {7.f, 8.f, 9.f}) b->add_float_data(value);
  onnx::ValueInfoProto* info = graph->add_value_info();
  info->set_name("W");
  auto* metadata = info->add_metadata_props();
  metadata->set_key("pkg.torch.export.graph_signature.InputSpec.kind");
  metadata->set_value("PARAMETER");
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type("Gemm");
  node->set_name("fc");
  for (const char* name : {"x", "W", "b"}) node->add_input(name);
  node->add_output("y");
  return model;
}

StatusOr<OnnxModel> Parse(const onnx::ModelProto& model, const std::string& folder = "") {
  return OnnxModel::Parse(model.SerializeAsString(), folder, "test.onnx");
}

std::string ErrorOf(const onnx::ModelProto& model, const std::string& folder = "") {
  const StatusOr<OnnxModel> parsed = Parse(model, folder);
  return parsed.ok() ? "no error" : parsed.status().message();
}

TEST(OnnxModel, TellsWhatTheFileHolds) {
  const StatusOr<OnnxModel> model = Parse(LinearModel());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->ir_version(), 10);
  EXPECT_EQ(model->producer(), "pytorch 2.6.0");
  EXPECT_EQ(model->opsets().at(""), 17);
  ASSERT_EQ(model->inputs().size(), 1u);
  EXPECT_EQ(model->inputs()[0].type, "float[batch,2]");
  EXPECT_EQ((*model->inputs()[0].dims)[0].symbol, "batch");
  ASSERT_EQ(model->initializers().size(), 2u);
  EXPECT_EQ(model->FindInitializer("W")->metadata.at("pkg.torch.export.graph_signature.InputSpec.kind"), "PARAMETER");
  EXPECT_EQ(model->Initializer("W")->DoubleAt(5), 6);
  EXPECT_EQ(model->Initializer("b")->DoubleAt(2), 9);
  EXPECT_EQ(model->nodes()[0].Describe(17), "fc (Gemm, opset 17)");
  EXPECT_FALSE(model->has_training_info());
  EXPECT_THAT(model->Initializer("none").status().message(), HasSubstr("there is no initializer 'none'"));
}

TEST(OnnxModel, InitializersAmongTheInputsNeedNoFeed) {
  onnx::ModelProto proto = LinearModel();
  proto.mutable_graph()->add_input()->set_name("W");
  const StatusOr<OnnxModel> model = Parse(proto);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->inputs().size(), 1u);
  EXPECT_TRUE(model->FindInitializer("W")->also_input);
  EXPECT_FALSE(model->FindInitializer("b")->also_input);
}

TEST(OnnxModel, TextIsReadToo) {
  const StatusOr<OnnxModel> model = OnnxModel::ParseText(
      "<ir_version: 8, opset_import: [\"\" : 13]> g (float[N] x) => (float[N] y) <float[1] k = {2}> { y = Mul (x, k) }",
      "", "g.onnxtxt");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->opsets().at(""), 13);
  EXPECT_EQ(model->Initializer("k")->DoubleAt(0), 2);
}

TEST(OnnxModel, ModesOfBatchNormalizationAndDropout) {
  const StatusOr<OnnxModel> model = OnnxModel::ParseText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2,3] x, bool flag) => (float[2,3] y)
    <float[3] s = {1, 1, 1}, float r = {0.5}, bool on = {1}> {
      a, m, v = BatchNormalization <training_mode = 1> (x, s, s, s, s)
      b = BatchNormalization (a, s, s, s, s)
      c = Dropout (b, r, on)
      d = Dropout (c, r)
      y = Dropout (d, r, flag)
    })",
                                                         "", "g");
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::string modes;
  for (const ModeNode& node : model->mode_nodes()) {
    modes += node.name + (node.known ? (node.training ? " train, " : " infer, ") : " unknown, ");
  }
  EXPECT_EQ(modes, "a train, b infer, c train, d infer, y unknown, ");
}

TEST(OnnxModel, UntieGivesEachNameItsOwnTensor) {
  StatusOr<OnnxModel> model = OnnxModel::ParseText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { u = Identity (w) t = Mul (x, w) y = Add (t, u) })",
                                                   "", "g");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->tied_names().at("u"), "w");
  EXPECT_THAT(model->Untie(), ElementsAre("u"));
  EXPECT_TRUE(model->tied_names().empty());
  EXPECT_EQ(model->Initializer("u")->DoubleAt(1), 2);
  EXPECT_EQ(model->nodes().size(), 2u);
}

TEST(OnnxModel, BrokenBytesAreLocated) {
  const std::string bytes = LinearModel().SerializeAsString();
  const Status cut = OnnxModel::Parse(bytes.substr(0, bytes.size() - 20), "", "cut.onnx").status();
  EXPECT_EQ(cut.code(), StatusCode::kInvalidModel);
  EXPECT_THAT(cut.message(), HasSubstr("cut.onnx: not an ONNX model: byte "));
  EXPECT_THAT(OnnxModel::Parse("hello world", "", "x").status().message(),
              HasSubstr("byte 3: field 13 has the unknown wire type 4"));
  EXPECT_THAT(OnnxModel::Parse("", "", "x").status().message(), HasSubstr("no graph"));
}

TEST(OnnxModel, StructureIsChecked) {
  onnx::ModelProto old = LinearModel();
  old.set_ir_version(2);
  EXPECT_THAT(ErrorOf(old), HasSubstr("IR version 2"));
  onnx::ModelProto newer = LinearModel();
  newer.set_ir_version(1000);
  EXPECT_THAT(ErrorOf(newer), HasSubstr("IR version 1000"));
  onnx::ModelProto twice = LinearModel();
  twice.mutable_graph()->mutable_initializer(1)->set_name("W");
  EXPECT_THAT(ErrorOf(twice), HasSubstr("two initializers are named 'W'"));
  onnx::ModelProto nameless = LinearModel();
  nameless.mutable_graph()->mutable_initializer(1)->clear_name();
  EXPECT_THAT(ErrorOf(nameless), HasSubstr("no name"));
}

TEST(OnnxModel, PayloadsMustFitTheirTypes) {
  onnx::ModelProto model = LinearModel();
  onnx::TensorProto* w = model.mutable_graph()->mutable_initializer(0);
  w->set_dims(0, 3);
  EXPECT_THAT(ErrorOf(model), HasSubstr("tensor 'W' of type float[3,3] needs 36 bytes, its raw_data has 24"));
  w->set_dims(0, -2);
  EXPECT_THAT(ErrorOf(model), HasSubstr("negative dimension"));
  w->set_dims(0, int64_t{1} << 62);
  w->set_dims(1, int64_t{1} << 62);
  EXPECT_THAT(ErrorOf(model), HasSubstr("too large"));
  onnx::ModelProto typed = LinearModel();
  typed.mutable_graph()->mutable_initializer(1)->add_float_data(1);
  EXPECT_THAT(ErrorOf(typed), HasSubstr("'b' of type float[3] holds 4 elements"));
}

void MakeExternal(onnx::ModelProto& model, const std::string& location, const std::string& offset = "",
                  const std::string& length = "") {
  onnx::TensorProto* w = model.mutable_graph()->mutable_initializer(0);
  w->clear_raw_data();
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    onnx::StringStringEntryProto* entry = w->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("location", location);
  add("offset", offset);
  add("length", length);
}

std::string SixFloats() {
  const float weights[6] = {10, 20, 30, 40, 50, 60};
  return {reinterpret_cast<const char*>(weights), sizeof(weights)};
}

TEST_F(OnnxModelFile, ExternalDataIsRead) {
  WriteFile("w.bin", "pad!" + SixFloats());
  onnx::ModelProto proto = LinearModel();
  MakeExternal(proto, "./w.bin", "4", "24");
  WriteFile("m.onnx", proto.SerializeAsString());
  const StatusOr<OnnxModel> model = OnnxModel::Load(Path("m.onnx"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(model->FindInitializer("W")->external);
  EXPECT_EQ(model->Initializer("W")->DoubleAt(5), 60);
}

TEST_F(OnnxModelFile, ExternalDataStaysInTheFolder) {
  fs::create_directories(folder_ / "model");
  WriteFile("secret", SixFloats());
  WriteFile("model/plain", SixFloats());
  fs::create_symlink(folder_ / "secret", folder_ / "model" / "link");
  fs::create_symlink(folder_, folder_ / "model" / "up");
  fs::create_hard_link(folder_ / "secret", folder_ / "model" / "hard");
  const auto error_of = [&](const std::string& location, const std::string& offset = "",
                            const std::string& length = "") {
    onnx::ModelProto proto = LinearModel();
    MakeExternal(proto, location, offset, length);
    return ErrorOf(proto, Path("model"));
  };
  EXPECT_EQ(error_of("plain"), "no error");
  EXPECT_THAT(error_of(Path("secret")), HasSubstr("must be a relative path"));
  EXPECT_THAT(error_of("../secret"), HasSubstr("must be a relative path"));
  EXPECT_THAT(error_of("up/../../secret"), HasSubstr("must be a relative path"));
  EXPECT_THAT(error_of("link"), HasSubstr("goes through a link"));
  EXPECT_THAT(error_of("up/secret"), HasSubstr("goes through a link"));
  EXPECT_THAT(error_of("hard"), HasSubstr("hard link"));
  EXPECT_THAT(error_of("."), HasSubstr("must be a relative path"));
  EXPECT_THAT(error_of("absent"), HasSubstr("cannot be opened"));
  EXPECT_THAT(error_of(""), HasSubstr("no location"));
  EXPECT_THAT(error_of("plain", "4"), HasSubstr("has 24 bytes, the model asks for 24 at offset 4"));
  EXPECT_THAT(error_of("plain", "9223372036854775807"), HasSubstr("at offset 9223372036854775807"));
  EXPECT_THAT(error_of("plain", "-1"), HasSubstr("expected a number of bytes"));
  EXPECT_THAT(error_of("plain", "0", "20"), HasSubstr("has 20 bytes, its type float[2,3] needs 24"));
}

TEST_F(OnnxModelFile, ExternalDataNeedsAFolder) {
  onnx::ModelProto proto = LinearModel();
  MakeExternal(proto, "w.bin");
  EXPECT_THAT(ErrorOf(proto), HasSubstr("not loaded from a folder"));
}

TEST_F(OnnxModelFile, MissingFilesAreUsageErrors) {
  const Status status = OnnxModel::Load(Path("absent.onnx")).status();
  EXPECT_EQ(status.code(), StatusCode::kUsage);
  EXPECT_THAT(status.message(), HasSubstr("absent.onnx: cannot open the model"));
  EXPECT_EQ(OnnxModel::Load(folder_.string()).status().code(), StatusCode::kUsage);
}

TEST_F(OnnxModelFile, SavingChangesNothingButPayloads) {
  const onnx::ModelProto proto = LinearModel();
  const StatusOr<OnnxModel> model = Parse(proto);
  const Tensor b = Tensor::FromVector<float>({3}, {-1, -2, -3});
  ASSERT_EQ(model->Save(Path("same.onnx"), {}).message(), "");
  ASSERT_EQ(model->Save(Path("new.onnx"), {{"b", &b}}).message(), "");

  onnx::ModelProto same, changed, expected = proto;
  ASSERT_TRUE(same.ParseFromString(ReadFile(Path("same.onnx"))));
  EXPECT_EQ(same.SerializeAsString(), proto.SerializeAsString());
  ASSERT_TRUE(changed.ParseFromString(ReadFile(Path("new.onnx"))));
  onnx::TensorProto* payload = expected.mutable_graph()->mutable_initializer(1);
  payload->clear_float_data();
  payload->set_raw_data(b.data(), b.bytes());
  EXPECT_EQ(changed.SerializeAsString(), expected.SerializeAsString());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2) << "temporary files left";
}

TEST_F(OnnxModelFile, SavingRefusesOtherTypesAndNames) {
  const StatusOr<OnnxModel> model = Parse(LinearModel());
  const Tensor wrong = Tensor::FromVector<float>({2}, {1, 2});
  EXPECT_THAT(model->Save(Path("a.onnx"), {{"b", &wrong}}).message(), HasSubstr("'b' of type float[3]"));
  EXPECT_THAT(model->Save(Path("a.onnx"), {{"c", &wrong}}).message(), HasSubstr("no initializer 'c'"));
  EXPECT_FALSE(fs::exists(Path("a.onnx")));
  EXPECT_FALSE(model->Save(Path("no/such/folder.onnx"), {}).ok());
}

TEST_F(OnnxModelFile, OffsetsBeyondTwoGibibytes) {
  const int64_t offset = (int64_t{5} << 30) + 8;
  WriteFile("large.bin", "");
  fs::resize_file(Path("large.bin"), static_cast<uintmax_t>(offset));  // a hole: takes no space on disk
  std::ofstream(Path("large.bin"), std::ios::binary | std::ios::app) << SixFloats();
  onnx::ModelProto proto = LinearModel();
  MakeExternal(proto, "large.bin", std::to_string(offset), "24");
  WriteFile("m.onnx", proto.SerializeAsString());
  const StatusOr<OnnxModel> model = OnnxModel::Load(Path("m.onnx"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->Initializer("W")->DoubleAt(5), 60);
}

TEST_F(OnnxModelFile, LargeModelsKeepTheirTensorsBeside) {
  onnx::ModelProto proto = LinearModel();
  onnx::TensorProto* large = proto.mutable_graph()->add_initializer();
  large->set_name("large");
  large->set_data_type(onnx::TensorProto::INT64);
  large->add_dims(300);
  for (int i = 0; i < 300; ++i) large->add_int64_data(i);
  onnx::GraphProto graph = proto.graph();
  graph.clear_initializer();
  onnx::ModelProto shell = proto;
  shell.clear_graph();
  std::vector<const onnx::TensorProto*> tensors;
  for (const onnx::TensorProto& tensor : proto.graph().initializer()) tensors.push_back(&tensor);
  ASSERT_EQ(WriteModelParts(shell, graph, tensors, "", {}, Path("m.onnx"), /*largest=*/500).message(), "");
  const StatusOr<OnnxModel> model = OnnxModel::Load(Path("m.onnx"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(model->FindInitializer("large")->external);
  EXPECT_FALSE(model->FindInitializer("W")->external) << "small tensors stay inside";
  EXPECT_EQ(model->Initializer("large")->IntAt(299), 299);
  EXPECT_EQ(model->Initializer("b")->DoubleAt(2), 9);
}

TEST_F(OnnxModelFile, ExternalTensorsStayExternal) {
  WriteFile("w.bin", SixFloats());
  onnx::ModelProto proto = LinearModel();
  MakeExternal(proto, "w.bin");
  WriteFile("m.onnx", proto.SerializeAsString());
  const StatusOr<OnnxModel> model = OnnxModel::Load(Path("m.onnx"));
  ASSERT_TRUE(model.ok());
  const Tensor w = Tensor::FromVector<float>({2, 3}, {0, 1, 0, 1, 0, 1});
  fs::create_directories(folder_ / "out");
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(model
                  ->Save(Path("out/m.onnx"), round == 1 ? std::map<std::string, const Tensor*>{}
                                                        : std::map<std::string, const Tensor*>{{"W", &w}})
                  .message(),
              "");
    const StatusOr<OnnxModel> saved = OnnxModel::Load(Path("out/m.onnx"));
    ASSERT_TRUE(saved.ok()) << saved.status().message();
    EXPECT_TRUE(saved->FindInitializer("W")->external);
    EXPECT_EQ(saved->Initializer("W")->DoubleAt(5), round == 1 ? 60 : 1);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "out"), fs::directory_iterator()), 2);
  }
  ASSERT_EQ(model->Save(Path("m.onnx"), {{"W", &w}}).message(), "");
  EXPECT_TRUE(fs::exists(Path("w.bin"))) << "the data this model was read from";
  EXPECT_EQ(OnnxModel::Load(Path("m.onnx"))->Initializer("W")->DoubleAt(5), 1);
}

}  // namespace
}  // namespace onnxtrain
