// SPDX-License-Identifier: Apache-2.0
// The trained model as it is deployed: without its loss, BatchNormalization and Dropout for inference.
#ifndef ONNXTRAIN_GRAPH_INFERENCE_EXPORT_H_
#define ONNXTRAIN_GRAPH_INFERENCE_EXPORT_H_

#include <map>
#include <optional>
#include <string>

#include "graph/onnx_model.h"

namespace onnxtrain {

struct InferenceExportOptions {
  // The graph output that is the loss; "" where the loss was appended by training and is not in the file. Not set:
  // the only output that is declared as a floating-point scalar (one element), as `--loss auto` takes it; none where
  // there are several or no such outputs.
  std::optional<std::string> loss;
};

// Writes `model` with new payloads for the named initializers, changed as follows and not otherwise:
// - the loss output goes, and with it nodes, initializers and inputs that nothing else needs; where it is the only
// output,
//   what fed it becomes the output: the scores of a classification loss, or the values that meet inputs which are read
//   after the last weight only (labels), or those from which an input that met no weight is subtracted (a target)
// - BatchNormalization and Dropout lose their training mode, in functions and branches too
// - training_info goes
// Appears whole or not at all. Usage when options.loss names no output; InvalidModel when none of these
// tells what the model predicts.
Status ExportInference(const OnnxModel& model, const InferenceExportOptions& options,
                       const std::map<std::string, const Tensor*>& updated, const std::string& path);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_INFERENCE_EXPORT_H_
