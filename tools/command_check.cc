// SPDX-License-Identifier: Apache-2.0
// onnx-train check: specialise, differentiate and plan, without data; says what is unsupported or decomposed.
#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/number_text.h"
#include "tools/run_length.h"
#include "tools/run_session.h"

namespace onnxtrain {
namespace {

using Json = nlohmann::ordered_json;

void Print(const LocalSession& session, const RunOptions& run) {
  int64_t elements = 0;
  int64_t count = 0;
  for (const TensorInfo& tensor : session.tensors()) {
    if (tensor.verdict != "trainable") continue;
    elements += tensor.type.elements();
    ++count;
  }
  if (run.json) {
    const Json json = {{"trainable", true},
                       {"tensors", count},
                       {"elements", elements},
                       {"decomposed", session.decomposed()},
                       {"notes", session.notes()}};
    Console::Print(JsonText(json));
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
  AddTrainingOptions(options, run);
  AddOutputOptions(options, run);
  RETURN_IF_ERROR(options.Parse(arguments));
  if (options.help_wanted()) {
    Console::Print(options.Help("check", "can this model be trained? exit code 0 yes, 3 no"));
    return 0;
  }
  RETURN_IF_ERROR(CheckTogether(options, run));
  Console console(run.quiet);
  StatusOr<OpenedRun> opened = OpenRun(run, console);
  if (opened.ok()) RETURN_IF_ERROR(ResolveLength(run, opened->data).status());
  const StatusOr<std::unique_ptr<LocalSession>> session =
      opened.ok() ? CreateSession(std::move(opened->model), run)
                  : StatusOr<std::unique_ptr<LocalSession>>(opened.status());
  if (session.ok()) {
    Print(**session, run);
    return 0;
  }
  if (run.json && session.status().code() == StatusCode::kInvalidModel) {
    Console::Print(JsonText(Json{{"trainable", false}, {"reason", session.status().message()}}));
  }
  return session.status();
}

}  // namespace onnxtrain
