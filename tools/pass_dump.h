// SPDX-License-Identifier: Apache-2.0
// --dump-passes: the program as read and after each pass, as canonical text.
#ifndef ONNXTRAIN_TOOLS_PASS_DUMP_H_
#define ONNXTRAIN_TOOLS_PASS_DUMP_H_

#include <string>

#include "graph/onnx_model.h"
#include "runtime/training_program.h"

namespace onnxtrain {

// Builds the program of a full batch. With a folder, writes FOLDER/00-read.onnxtxt and FOLDER/NN-<pass>.onnxtxt as it
// goes; what the folder held before is removed. `folder` may be empty.
StatusOr<TrainingProgram> BuildAndDump(const OnnxModel& model, const TrainingOptions& options,
                                       const std::string& folder);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_PASS_DUMP_H_
