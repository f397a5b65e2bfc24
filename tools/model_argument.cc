// SPDX-License-Identifier: Apache-2.0
#include "tools/model_argument.h"

#include <filesystem>

namespace onnxtrain {

StatusOr<std::string> ModelFile(const std::string& argument) {
  std::error_code error;
  const std::filesystem::path path(argument);
  if (std::filesystem::is_regular_file(path, error)) return argument;
  if (std::filesystem::is_directory(path, error)) {
    // A run folder holds the model with its trained weights, a build folder a copy of what it was built from.
    const std::filesystem::path inside = path / "model.onnx";
    if (std::filesystem::is_regular_file(inside, error)) return inside.string();
    return UsageError("folder '" + argument +
                      "' holds no model.onnx: MODEL is a .onnx file, ONNX text, a run folder, or one written by build");
  }
  return UsageError("there is no file '" + argument + "'");
}

StatusOr<OnnxModel> LoadModelArgument(const std::string& argument) {
  ASSIGN_OR_RETURN(const std::string file, ModelFile(argument));
  return OnnxModel::Load(file);
}

}  // namespace onnxtrain
