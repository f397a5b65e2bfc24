// SPDX-License-Identifier: Apache-2.0
// onnx-train plan: streams, launches, records, waits, buckets and memory of a step, and its simulated time.
#include "runtime/file_system.h"
#include "tools/command.h"
#include "tools/link_options.h"
#include "tools/run_length.h"
#include "tools/run_session.h"

namespace onnxtrain {
namespace {

struct PlanArguments {
  RunOptions run;
  LinkOptions links;
  std::string graph;
  std::string trace;
};

Status WriteTrace(const PlanReport& report, int ranks, const std::string& path) {
  const std::string json =
      TraceJson(TraceOf(report.simulation, *report.plan, *report.graph, ranks), report.plan->streams);
  PosixFileSystem files;
  return WriteFileAtomically(files, path, [&](WritableFile& file) { return file.Append(std::string_view(json)); });
}

}  // namespace

StatusOr<int> RunPlan(const std::vector<std::string>& raw) {
  PlanArguments arguments;
  RunOptions& run = arguments.run;
  OptionSet options;
  AddTrainingOptions(options, run);
  options.Section("Plan");
  options.String("graph", &arguments.graph, "NAME",
                 "step, eval, gather; first, middle, last with --accum (the training step)");
  AddLinkOptions(options, arguments.links, run.training);
  options.String("trace", &arguments.trace, "FILE", "simulated timeline over the first link, for Perfetto");
  AddOutputOptions(options, run);
  RETURN_IF_ERROR(options.Parse(raw));
  if (options.help_wanted()) {
    Console::Print(
        options.Help("plan", "the execution plan of a step: streams, launches, records, waits, buckets, memory"));
    return 0;
  }
  RETURN_IF_ERROR(CheckTogether(options, run));
  Console console(run.quiet);
  ASSIGN_OR_RETURN(OpenedRun opened, OpenRun(run, console));
  RETURN_IF_ERROR(ResolveLength(run, opened.data).status());
  const std::vector<double> links = arguments.links.Apply(run.training);
  ASSIGN_OR_RETURN(std::unique_ptr<LocalSession> session, CreateSession(std::move(opened.model), run));
  for (const std::string& note : session->notes()) console.Note("note: " + note);
  const std::string graph = arguments.graph.empty() ? session->main_graph() : arguments.graph;
  ASSIGN_OR_RETURN(const PlanReport report, session->Report(graph, links));
  if (!arguments.trace.empty()) RETURN_IF_ERROR(WriteTrace(report, run.training.ranks, arguments.trace));
  Console::Print(run.json ? PlanJson(report) : PlanText(report));
  return 0;
}

}  // namespace onnxtrain
