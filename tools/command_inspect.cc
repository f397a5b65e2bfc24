// SPDX-License-Identifier: Apache-2.0
// onnx-train inspect: what a model file holds, what of it would train and why, and what its exporter did to it.
#include <map>
#include <nlohmann/json.hpp>

#include "graph/op_registry.h"
#include "runtime/forward_program.h"
#include "tools/command.h"
#include "tools/number_text.h"
#include "tools/own_operators.h"
#include "tools/run_session.h"

namespace onnxtrain {
namespace {

std::map<std::string, int64_t> CountOps(const OnnxModel& model) {
  std::map<std::string, int64_t> ops;
  for (const ModelNode& node : model.nodes()) ++ops[node.op];
  return ops;
}

std::string ModeName(const ModeNode& node) {
  return !node.known ? "computed by the model" : node.training ? "training" : "inference";
}

// A dimension is a number, a symbol, or null where the file says nothing.
nlohmann::ordered_json AsJson(const std::vector<ModelValue>& values) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ModelValue& value : values) {
    nlohmann::ordered_json entry{{"name", value.name}, {"type", value.type}, {"dtype", NameOf(value.dtype)}};
    if (value.dims) {
      entry["shape"] = nlohmann::ordered_json::array();
      for (const ModelDim& dim : *value.dims) {
        if (dim.value) {
          entry["shape"].push_back(*dim.value);
        } else {
          entry["shape"].push_back(dim.symbol.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(dim.symbol));
        }
      }
    }
    json.push_back(std::move(entry));
  }
  return json;
}

void PrintJson(const OnnxModel& model, const ForwardProgram& forward) {
  nlohmann::ordered_json json;
  json["ir_version"] = model.ir_version();
  json["producer"] = model.producer();
  for (const auto& [domain, version] : model.opsets()) json["opsets"][domain] = version;
  json["inputs"] = AsJson(model.inputs());
  json["outputs"] = AsJson(model.outputs());
  json["initializers"] = nlohmann::ordered_json::array();
  for (const TensorInfo& tensor : forward.tensors) {
    json["initializers"].push_back({{"name", tensor.name},
                                    {"dtype", std::string(NameOf(tensor.type.dtype))},
                                    {"shape", tensor.type.shape},
                                    {"verdict", tensor.verdict},
                                    {"reason", tensor.reason}});
  }
  json["ops"] = nlohmann::ordered_json::object();
  for (const auto& [op, count] : CountOps(model)) json["ops"][op] = count;
  json["modes"] = nlohmann::ordered_json::array();
  for (const ModeNode& node : model.mode_nodes()) {
    json["modes"].push_back({{"op", node.op}, {"name", node.name}, {"mode", ModeName(node)}});
  }
  json["traps"] = forward.traps;
  json["notes"] = forward.notes;
  Console::Print(JsonText(json));
}

void PrintText(const OnnxModel& model, const ForwardProgram& forward) {
  std::string text = model.path() + "  IR " + std::to_string(model.ir_version());
  for (const auto& [domain, version] : model.opsets()) {
    text += ", " + (domain.empty() ? "opset" : domain) + " " + std::to_string(version);
  }
  Console::Print(text + (model.producer().empty() ? "" : ", by " + model.producer()));
  for (const ModelValue& input : model.inputs()) Console::Print("input   " + input.name + "  " + input.type);
  for (const ModelValue& output : model.outputs()) Console::Print("output  " + output.name + "  " + output.type);
  std::vector<std::vector<std::string>> rows{{"tensor", "type", "verdict", "reason"}};
  for (const TensorInfo& tensor : forward.tensors) {
    rows.push_back({tensor.name, ToString(tensor.type), tensor.verdict, tensor.reason});
  }
  Console::Print("\n" + Table(rows) + "\n");
  std::string ops;
  for (const auto& [op, count] : CountOps(model)) ops += (ops.empty() ? "" : ", ") + op + " " + std::to_string(count);
  Console::Print("operators: " + ops);
  for (const ModeNode& node : model.mode_nodes()) {
    Console::Print("mode: " + node.op + " " + node.name + ": " + ModeName(node));
  }
  for (const std::string& note : forward.notes) Console::Print("note: " + note);
  for (const std::string& trap : forward.traps) Console::Print("trap: " + trap);
}

}  // namespace

StatusOr<int> RunInspect(const std::vector<std::string>& arguments) {
  RunOptions run;
  OptionSet options;
  AddTrainingOptions(options, run);
  AddOutputOptions(options, run);
  options.Positional("MODEL", &run.model, 0, 1);
  bool operators = false;
  options.Flag("ops", &operators, "the operators of the domain onnxtrain, in place of a model");
  RETURN_IF_ERROR(options.Parse(arguments));
  if (options.help_wanted()) {
    Console::Print(options.Help("inspect", "what a model holds and what would train"));
    return 0;
  }
  if (operators) {
    Console::Print(OwnOperatorTable());
    return 0;
  }
  if (run.model.empty()) return UsageError("missing argument MODEL");
  RETURN_IF_ERROR(CheckTogether(options, run));
  Console console(run.quiet);
  ASSIGN_OR_RETURN(const OnnxModel model, LoadModelFor(run, console));
  ASSIGN_OR_RETURN(const RunData data, OpenRunData(model, run));
  for (const std::string& note : data.notes) console.Note("note: " + note);
  ForwardProgramOptions build;
  build.local_batch = run.training.batch_size;
  build.allow_nothing_trainable = true;
  build.loss_optional = true;
  if (!run.training.loss_on.empty()) build.outputs = {run.training.loss_on};
  ASSIGN_OR_RETURN(ForwardProgram forward, BuildForwardProgram(model, run.training, build));
  RETURN_IF_ERROR(SetInitialWeights(model, run, forward.program));
  if (run.json) {
    PrintJson(model, forward);
  } else {
    PrintText(model, forward);
  }
  return 0;
}

}  // namespace onnxtrain
