// SPDX-License-Identifier: Apache-2.0
// A command of onnx-train: a name, a line of help, and a function. The list is in tools/commands.cc.
#ifndef ONNXTRAIN_TOOLS_COMMAND_H_
#define ONNXTRAIN_TOOLS_COMMAND_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace onnxtrain {

struct Command {
  std::string_view name;
  std::string_view summary;
  // The arguments behind the name. Returns the exit code of a run that is over, or the error that ended it.
  StatusOr<int> (*run)(const std::vector<std::string>& arguments);
};

std::span<const Command> AllCommands();

StatusOr<int> RunBuild(const std::vector<std::string>& arguments);
StatusOr<int> RunCheck(const std::vector<std::string>& arguments);
StatusOr<int> RunEval(const std::vector<std::string>& arguments);
StatusOr<int> RunExport(const std::vector<std::string>& arguments);
StatusOr<int> RunGrad(const std::vector<std::string>& arguments);
StatusOr<int> RunInspect(const std::vector<std::string>& arguments);
StatusOr<int> RunOpt(const std::vector<std::string>& arguments);
StatusOr<int> RunPlan(const std::vector<std::string>& arguments);
StatusOr<int> RunTest(const std::vector<std::string>& arguments);
StatusOr<int> RunTrain(const std::vector<std::string>& arguments);

// The whole program: dispatch, help, error text on stderr, exit code.
int RunOnnxTrain(const std::vector<std::string>& arguments);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_COMMAND_H_
