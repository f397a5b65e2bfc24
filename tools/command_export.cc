// SPDX-License-Identifier: Apache-2.0
// onnx-train export: the trained model of a run in its inference form. Needs the run folder alone, not its data.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "graph/inference_export.h"
#include "runtime/checkpoint.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/model_argument.h"
#include "tools/number_text.h"
#include "tools/option_set.h"

namespace onnxtrain {
namespace {

using Json = nlohmann::ordered_json;

struct ExportArguments {
  std::vector<std::string> run;
  std::string out;
  std::optional<int64_t> step;
  bool json = false;
  bool quiet = false;
};

// What the run's configuration says of its loss: appended by training, an output of the file, or the only scalar one.
StatusOr<std::optional<std::string>> LossOutput(const std::string& folder, const OnnxModel& model) {
  std::ifstream stream(folder + "/config.json");
  std::stringstream text;
  text << stream.rdbuf();
  const Json config = Json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return InvalidDataError("'" + folder + "/config.json' is not the configuration of a run");
  const auto text_of = [&](const char* key) {
    const auto found = config.find(key);
    return found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const std::string loss = text_of("loss");
  const std::string loss_on = text_of("loss-on");
  if (!loss.empty() && loss != "auto") return std::optional<std::string>("");
  for (const ModelValue& output : model.outputs()) {
    if (output.name == loss_on) return std::optional<std::string>(loss_on);
  }
  return std::optional<std::string>();
}

StatusOr<CheckpointInfo> FindCheckpoint(const std::string& run, std::optional<int64_t> step) {
  PosixFileSystem files;
  ASSIGN_OR_RETURN(const CheckpointList list, ListCheckpoints(files, run + "/checkpoints"));
  if (list.complete.empty() && !list.broken.empty()) return list.broken.back().second;
  if (list.complete.empty()) return InvalidDataError("'" + run + "' holds no complete checkpoint");
  if (!step) return list.complete.back();
  std::string steps;
  for (const CheckpointInfo& checkpoint : list.complete) {
    if (checkpoint.step == *step) return checkpoint;
    steps += (steps.empty() ? "" : ", ") + std::to_string(checkpoint.step);
  }
  for (const auto& [folder, status] : list.broken) {
    if (folder.ends_with("/" + CheckpointName(*step))) return status;
  }
  return UsageError("'" + run + "' has no checkpoint of step " + std::to_string(*step) + "; it has " + steps);
}

// Weights and buffers in the types of the file. Frozen tensors are in the file already.
std::map<std::string, Tensor> TrainedTensors(const Checkpoint& checkpoint, const OnnxModel& model) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (!name.starts_with("parameter/") && !name.starts_with("buffer/")) continue;
    const std::string initializer = name.substr(name.find('/') + 1);
    const ModelInitializer* original = model.FindInitializer(initializer);
    if (original != nullptr) tensors[initializer] = tensor.CastTo(original->type.dtype);
  }
  return tensors;
}

StatusOr<int> Export(const ExportArguments& arguments) {
  const std::string& run = arguments.run[0];
  ASSIGN_OR_RETURN(const OnnxModel model, LoadModelArgument(run));
  std::map<std::string, Tensor> trained;
  InferenceExportOptions options;
  std::optional<int64_t> step;
  PosixFileSystem files;
  if (files.Exists(run + "/config.json")) {
    ASSIGN_OR_RETURN(const CheckpointInfo found, FindCheckpoint(run, arguments.step));
    ASSIGN_OR_RETURN(const Checkpoint checkpoint, ReadCheckpoint(found.folder));
    trained = TrainedTensors(checkpoint, model);
    step = checkpoint.step;
    ASSIGN_OR_RETURN(options.loss, LossOutput(run, model));
  } else if (arguments.step) {
    return UsageError("--step goes with a run folder; '" + run + "' has no checkpoints");
  }
  std::map<std::string, const Tensor*> updated;
  for (const auto& [name, tensor] : trained) updated[name] = &tensor;
  RETURN_IF_ERROR(ExportInference(model, options, updated, arguments.out));
  if (arguments.json) {
    Json json{{"model", arguments.out}};
    if (step) json["step"] = *step;
    Console::Print(JsonText(json));
  } else {
    Console(arguments.quiet)
        .Note("wrote " + arguments.out + (step ? ", the state after " + std::to_string(*step) + " steps" : ""));
  }
  return 0;
}

}  // namespace

StatusOr<int> RunExport(const std::vector<std::string>& raw) {
  ExportArguments arguments;
  OptionSet options;
  options.Positional("RUN", &arguments.run, 1, 1);
  options.String("o", &arguments.out, "FILE.onnx", "the file to write");
  options.Custom("step", "K", "the checkpoint after K steps (the newest)",
                 [&arguments](const std::string& value) -> Status {
                   ASSIGN_OR_RETURN(arguments.step, ParseInt(value));
                   return OkStatus();
                 });
  options.Flag("json", &arguments.json, "stdout becomes one JSON document");
  options.Flag("quiet", &arguments.quiet, "nothing on stderr");
  RETURN_IF_ERROR(options.Parse(raw));
  if (options.help_wanted()) {
    Console::Print(options.Help(
        "export", "the trained model for inference: no loss, BatchNormalization and Dropout in inference mode"));
    return 0;
  }
  if (arguments.out.empty()) return UsageError("-o FILE.onnx is needed");
  return Export(arguments);
}

}  // namespace onnxtrain
