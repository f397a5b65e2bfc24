// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "graph/nearest_name.h"
#include "tools/command.h"
#include "tools/console.h"

namespace onnxtrain {
namespace {

constexpr Command kCommands[] = {
    {"train", "trains a model", RunTrain},
    {"eval", "loss and metrics over a data set, nothing updated", RunEval},
    {"export", "the trained model of a run for inference", RunExport},
    {"inspect", "what a model holds, what would train and why", RunInspect},
    {"check", "can this model be trained?", RunCheck},
    {"grad", "gradients of one batch, or their check against differences", RunGrad},
    {"plan", "the execution plan of a step: streams, waits, buckets, memory, time", RunPlan},
    {"build", "the rewritten graphs and the plan, in a folder", RunBuild},
    {"opt", "runs the listed passes and prints the graph as text", RunOpt},
    {"test", "runs ONNX backend test folders", RunTest},
};

std::string Overview() {
  std::string text =
      "onnx-train trains exported ONNX models.\n\n"
      "  onnx-train COMMAND MODEL [options]     onnx-train COMMAND --help\n\n";
  for (const Command& command : kCommands) {
    text += "  " + std::string(command.name) + std::string(12 - command.name.size(), ' ') +
            std::string(command.summary) + "\n";
  }
  return text +
         "\nMODEL is a .onnx file, ONNX text (.onnxtxt), a folder written by build, or a run folder.\n"
         "Exit codes: 0 ok, 1 failure, 2 usage, 3 model not trainable, 4 bad data, 5 not finite, 6 ranks.\n";
}

int Report(const std::string& command, const Status& status) {
  Console::Error("onnx-train " + command + ": " + status.message());
  if (status.code() == StatusCode::kUsage) Console::Error("see onnx-train " + command + " --help");
  return ExitCode(status.code());
}

}  // namespace

std::span<const Command> AllCommands() { return kCommands; }

int RunOnnxTrain(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::fputs(Overview().c_str(), stderr);
    return ExitCode(StatusCode::kUsage);
  }
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    std::fputs(Overview().c_str(), stdout);
    return 0;
  }
  if (arguments[0] == "--version") {
    std::puts("onnx-train " ONNXTRAIN_VERSION);
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    names.emplace_back(command.name);
    if (command.name != arguments[0]) continue;
    const StatusOr<int> code = command.run({arguments.begin() + 1, arguments.end()});
    return code.ok() ? *code : Report(arguments[0], code.status());
  }
  Console::Error("onnx-train: unknown command '" + arguments[0] + "'" + DidYouMean(arguments[0], names) +
                 "; onnx-train --help lists them");
  return ExitCode(StatusCode::kUsage);
}

}  // namespace onnxtrain
