// SPDX-License-Identifier: Apache-2.0
// Real exports, where they lie beside the clone: every one is specialised, or refused with a reason.
#include <gtest/gtest.h>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "graph/inference_export.h"
#include "graph/onnx_model.h"
#include "graph/onnx_reader.h"
#include "graph/verifier.h"

namespace onnxtrain {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> ModelsBeside(const char* folder) {
  std::vector<fs::path> files;
  const fs::path root = fs::path(ONNXTRAIN_SOURCE_DIR).parent_path() / "shared" / folder;
  if (!fs::exists(root)) return files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".onnx") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Symbols of the shared files: batch and sequence lengths; any consistent value does.
std::map<std::string, int64_t> AnyDims(const OnnxModel& model) {
  std::map<std::string, int64_t> dims;
  for (const ModelValue& input : model.inputs()) {
    if (!input.dims) continue;
    for (size_t axis = 0; axis < input.dims->size(); ++axis) {
      const ModelDim& dim = (*input.dims)[axis];
      if (!dim.value) dims[dim.symbol] = 4;
    }
  }
  return dims;
}

StatusOr<Graph> SpecializeFile(const fs::path& file, bool widen) {
  StatusOr<OnnxModel> model = OnnxModel::Load(file.string());
  if (!model.ok()) return model.status();
  SpecializeOptions options;
  options.dims = AnyDims(*model);
  options.widen_to_double = widen;
  options.is_state = [](const ModelInitializer& initializer) { return IsFloating(initializer.type.dtype); };
  return Specialize(*model, options);
}

class SharedModels : public ::testing::TestWithParam<const char*> {};

TEST_P(SharedModels, SpecializesEveryFile) {
  const std::vector<fs::path> files = ModelsBeside(GetParam());
  if (files.empty()) GTEST_SKIP() << "no folder shared/" << GetParam() << " beside the clone";
  int specialized = 0;
  for (const fs::path& file : files) {
    // Written by another runtime, with its own operators: refused by name.
    const bool foreign =
        file.string().find("ort_artifacts") != std::string::npos && file.filename() != "eval_model.onnx";
    for (const bool widen : {false, true}) {
      StatusOr<Graph> graph = SpecializeFile(file, widen);
      if (foreign) {
        const std::string reason = graph.status().message();
        EXPECT_TRUE(reason.find("com.microsoft") != std::string::npos || reason.find("seq(") != std::string::npos)
            << reason;
        continue;
      }
      EXPECT_TRUE(graph.ok()) << graph.status().message();
      if (!graph.ok()) continue;
      EXPECT_EQ(VerifyGraph(*graph).message(), "") << file;
      ++specialized;
    }
  }
  std::printf("%d of %zu specialised (f32 and f64 counted)\n", specialized, files.size() * 2);
}

onnx::ModelProto ReadProto(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromIstream(&stream)) << file;
  return model;
}

TEST_P(SharedModels, SavedFilesAreEqualAfterParsing) {
  const std::vector<fs::path> files = ModelsBeside(GetParam());
  if (files.empty()) GTEST_SKIP() << "no folder shared/" << GetParam() << " beside the clone";
  const fs::path saved = fs::temp_directory_path() / ("shared_models_" + std::to_string(getpid()) + ".onnx");
  for (const fs::path& file : files) {
    const StatusOr<OnnxModel> model = OnnxModel::Load(file.string());
    ASSERT_TRUE(model.ok()) << model.status().message();
    ASSERT_EQ(model->Save(saved.string(), {}).message(), "");
    EXPECT_EQ(ReadProto(saved).SerializeAsString(), ReadProto(file).SerializeAsString()) << file;
  }
  fs::remove(saved);
}

TEST_P(SharedModels, InferenceFormsAreValidAndSpecialise) {
  const std::vector<fs::path> files = ModelsBeside(GetParam());
  if (files.empty()) GTEST_SKIP() << "no folder shared/" << GetParam() << " beside the clone";
  const fs::path exported = fs::temp_directory_path() / ("shared_models_" + std::to_string(getpid()) + ".onnx");
  for (const fs::path& file : files) {
    if (file.string().find("ort_artifacts") != std::string::npos) continue;
    const StatusOr<OnnxModel> model = OnnxModel::Load(file.string());
    ASSERT_TRUE(model.ok()) << model.status().message();
    const Status status = ExportInference(*model, {}, {}, exported.string());
    if (file.parent_path().filename() == "vae") {  // its target is its input, and no difference is taken
      EXPECT_NE(status.message().find("cannot be told from its labels"), std::string::npos) << status.message();
      continue;
    }
    ASSERT_EQ(status.message(), "") << file;
    onnx::checker::check_model(ReadProto(exported));
    const StatusOr<Graph> graph = SpecializeFile(exported, false);
    EXPECT_TRUE(graph.ok()) << file << graph.status().message();
    const StatusOr<OnnxModel> read = OnnxModel::Load(exported.string());
    ASSERT_TRUE(read.ok());
    for (const ModeNode& node : read->mode_nodes()) EXPECT_FALSE(node.training) << file << node.name;
    for (const ModelNode& node : read->nodes()) EXPECT_NE(node.op, "SoftmaxCrossEntropyLoss") << file;
  }
  fs::remove(exported);
}

INSTANTIATE_TEST_SUITE_P(Shared, SharedModels, ::testing::Values("models", "zoo"));

}  // namespace
}  // namespace onnxtrain
