// SPDX-License-Identifier: Apache-2.0
// MODEL on the command line: a .onnx file, ONNX text, a folder written by `build`, or a run folder.
#ifndef ONNXTRAIN_TOOLS_MODEL_ARGUMENT_H_
#define ONNXTRAIN_TOOLS_MODEL_ARGUMENT_H_

#include <string>

#include "graph/onnx_model.h"

namespace onnxtrain {

// The file that MODEL means; Usage when there is none.
StatusOr<std::string> ModelFile(const std::string& argument);
StatusOr<OnnxModel> LoadModelArgument(const std::string& argument);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_MODEL_ARGUMENT_H_
