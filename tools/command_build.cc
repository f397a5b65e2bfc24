// SPDX-License-Identifier: Apache-2.0
// onnx-train build: the rewritten graphs and the plan of a run, in a folder that is a MODEL itself.
#include <nlohmann/json.hpp>

#include "graph/onnx_writer.h"
#include "runtime/file_system.h"
#include "tools/command.h"
#include "tools/link_options.h"
#include "tools/number_text.h"
#include "tools/pass_dump.h"
#include "tools/run_length.h"
#include "tools/run_session.h"

namespace onnxtrain {
namespace {

using Json = nlohmann::ordered_json;

struct BuildArguments {
  RunOptions run;
  LinkOptions links;
  std::string out;
};

// The file of each graph: train.onnx for what a step runs; with several micro-batches their other graphs beside it.
std::string FileOf(const std::string& graph, const std::string& main_graph) {
  return graph == main_graph ? "train.onnx" : graph == "eval" ? "eval.onnx" : "train." + graph + ".onnx";
}

StatusOr<std::vector<std::string>> WriteGraphs(const Program& program, const std::string& main_graph,
                                               const std::string& out) {
  std::vector<std::string> files;
  for (const auto& [name, graph] : program.graphs()) {
    const bool inner = name.starts_with("zero_") || name == "gather";
    if (inner) continue;
    files.push_back(out + "/" + FileOf(name, main_graph));
    RETURN_IF_ERROR(WriteOnnx(program, name, files.back()));
  }
  return files;
}

StatusOr<int> Build(BuildArguments& arguments) {
  RunOptions& run = arguments.run;
  Console console(run.quiet);
  ASSIGN_OR_RETURN(OpenedRun opened, OpenRun(run, console));
  RETURN_IF_ERROR(ResolveLength(run, opened.data).status());
  const std::vector<double> links = arguments.links.Apply(run.training);
  ASSIGN_OR_RETURN(std::unique_ptr<LocalSession> session, CreateSession(std::move(opened.model), run));
  for (const std::string& note : session->notes()) console.Note("note: " + note);
  ASSIGN_OR_RETURN(const PlanReport report, session->Report(session->main_graph(), links));
  PosixFileSystem files;
  RETURN_IF_ERROR(files.CreateFolders(arguments.out));
  ASSIGN_OR_RETURN(TrainingProgram built,
                   BuildAndDump(session->model(), run.training, run.dump_passes ? arguments.out + "/passes" : ""));
  RETURN_IF_ERROR(SetInitialWeights(session->model(), run, built.program));
  ASSIGN_OR_RETURN(std::vector<std::string> written, WriteGraphs(built.program, session->main_graph(), arguments.out));
  RETURN_IF_ERROR(run.init_weights.empty() ? session->model().Save(arguments.out + "/model.onnx", {})
                                           : session->SaveModel(arguments.out + "/model.onnx"));
  const std::string plan = PlanJson(report);
  RETURN_IF_ERROR(WriteFileAtomically(files, arguments.out + "/plan.json",
                                      [&](WritableFile& file) { return file.Append(std::string_view(plan)); }));
  for (const char* name : {"plan.json", "model.onnx"}) written.push_back(arguments.out + "/" + name);
  if (run.dump_passes) written.push_back(arguments.out + "/passes");
  if (run.json) {
    Console::Print(JsonText(Json{{"files", written}}));
  } else {
    for (const std::string& file : written) Console::Print(file);
  }
  return 0;
}

}  // namespace

StatusOr<int> RunBuild(const std::vector<std::string>& raw) {
  BuildArguments arguments;
  RunOptions& run = arguments.run;
  OptionSet options;
  AddTrainingOptions(options, run);
  options.Section("Build");
  options.String("o", &arguments.out, "DIR", "train.onnx, eval.onnx, plan.json, model.onnx");
  options.Flag("dump-passes", &run.dump_passes, "DIR/passes/NN-<pass>.onnxtxt, the program after each pass");
  AddLinkOptions(options, arguments.links, run.training);
  AddOutputOptions(options, run);
  RETURN_IF_ERROR(options.Parse(raw));
  if (options.help_wanted()) {
    Console::Print(options.Help("build", "runs the passes and writes the rewritten graphs and the plan"));
    return 0;
  }
  if (arguments.out.empty()) return UsageError("-o DIR is needed");
  RETURN_IF_ERROR(CheckTogether(options, run));
  return Build(arguments);
}

}  // namespace onnxtrain
