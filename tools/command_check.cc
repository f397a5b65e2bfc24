// SPDX-License-Identifier: Apache-2.0
// onnx-train check: specialise, differentiate and plan, without data; says what is unsupported or decomposed.
#include <nlohmann/json.hpp>

#include "runtime/training_session.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/model_argument.h"
#include "tools/run_data.h"

namespace onnxtrain {
namespace {

void Print(const TrainingSession& session, const RunOptions& run) {
  int64_t elements = 0;
  int64_t count = 0;
  for (const TensorInfo& tensor : session.tensors()) {
    if (tensor.verdict != "trainable") continue;
    elements += tensor.type.elements();
    ++count;
  }
  if (run.json) {
    nlohmann::ordered_json json;
    json["trainable"] = true;
    json["tensors"] = count;
    json["elements"] = elements;
    json["decomposed"] = session.decomposed();
    json["notes"] = session.notes();
    Console::Print(json.dump(2));
    return;
  }
  Console::Print("trainable: " + std::to_string(count) + " tensors, " + std::to_string(elements) + " elements");
  for (const std::string& node : session.decomposed()) {
    Console::Print("decomposed: " + node + " is differentiated through its ONNX function body");
  }
  for (const std::string& note : session.notes()) Console::Print("note: " + note);
}

}  // namespace

StatusOr<int> RunCheck(const std::vector<std::string>& arguments) {
  RunOptions run;
  OptionSet options;
  AddModelOptions(options, run);
  AddOptimizerOptions(options, run);
  AddBatchOptions(options, run);
  AddDataOptions(options, run);
  AddOutputOptions(options, run);
  RETURN_IF_ERROR(options.Parse(arguments));
  if (options.help_wanted()) {
    Console::Print(options.Help("check", "can this model be trained? exit code 0 yes, 3 no"));
    return 0;
  }
  RETURN_IF_ERROR(CheckTogether(options, run));
  ASSIGN_OR_RETURN(const std::string file, ModelFile(run.model[0]));
  ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Load(file));
  ASSIGN_OR_RETURN(const RunData data, OpenRunData(model, run));
  ASSIGN_OR_RETURN(const std::unique_ptr<TrainingSession> session, TrainingSession::Create(file, run.training));
  Print(*session, run);
  return 0;
}

}  // namespace onnxtrain
