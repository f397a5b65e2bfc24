// SPDX-License-Identifier: Apache-2.0
// onnx-train opt: runs just the listed passes and prints the program as canonical text.
#include <cstdio>
#include <fstream>
#include <sstream>

#include "graph/program_text.h"
#include "graph/verifier.h"
#include "passes/pass_registry.h"
#include "runtime/data/file_contents.h"
#include "runtime/file_system.h"
#include "runtime/forward_program.h"
#include "tools/command.h"
#include "tools/model_argument.h"
#include "tools/run_length.h"
#include "tools/run_session.h"

namespace onnxtrain {
namespace {

struct OptArguments {
  RunOptions run;
  std::string passes;
  std::string out;
  bool list_passes = false;
  bool full = false;
};

std::string ReadText(const std::string& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Text that is canonical already, as goldens are; everything else is read as a model.
StatusOr<Program> ReadProgram(OptArguments& arguments) {
  ASSIGN_OR_RETURN(const std::string file, ModelFile(arguments.run.model[0]));
  Status canonical;
  if (EndsWith(file, ".onnxtxt") || EndsWith(file, ".txt")) {
    StatusOr<Program> program = ReadProgramText(ReadText(file));
    if (program.ok()) return program;
    canonical = program.status();
  }
  Console console(arguments.run.quiet);
  StatusOr<OnnxModel> model = LoadModelFor(arguments.run, console);
  if (!model.ok()) return canonical.ok() ? model.status() : canonical;
  ASSIGN_OR_RETURN(const RunData data, OpenRunData(*model, arguments.run));
  RETURN_IF_ERROR(ResolveLength(arguments.run, data).status());
  ForwardProgramOptions build;
  build.local_batch = arguments.run.training.batch_size;
  build.allow_nothing_trainable = true;
  build.loss_optional = true;
  if (!arguments.run.training.loss_on.empty()) build.outputs = {arguments.run.training.loss_on};
  ASSIGN_OR_RETURN(ForwardProgram forward, BuildForwardProgram(*model, arguments.run.training, build));
  RETURN_IF_ERROR(SetInitialWeights(*model, arguments.run, forward.program));
  return std::move(forward.program);
}

std::string PassList() {
  std::vector<std::vector<std::string>> rows{{"pass", "does"}};
  for (const auto& [name, entry] : PassRegistry::Default().entries()) rows.push_back({name, entry.summary});
  return Table(rows);
}

Status Write(const OptArguments& arguments, const std::string& text) {
  if (arguments.out.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return OkStatus();
  }
  PosixFileSystem files;
  return WriteFileAtomically(files, arguments.out,
                             [&](WritableFile& file) { return file.Append(std::string_view(text)); });
}

}  // namespace

StatusOr<int> RunOpt(const std::vector<std::string>& raw) {
  OptArguments arguments;
  OptionSet options;
  AddTrainingOptions(options, arguments.run);
  options.Positional("MODEL", &arguments.run.model, 0, 1);
  options.Section("Passes");
  options.String("passes", &arguments.passes, "LIST", "'build_backward,bucket_gradients<bucket_bytes=64>'");
  options.Flag("list-passes", &arguments.list_passes, "names of all passes");
  options.String("o", &arguments.out, "FILE", "write there instead of stdout");
  options.Flag("full", &arguments.full, "print every initializer whole");
  options.Flag("quiet", &arguments.run.quiet, "nothing but errors on stderr");
  RETURN_IF_ERROR(options.Parse(raw));
  if (options.help_wanted()) {
    Console::Print(options.Help("opt", "runs the listed passes and prints the graph as canonical text"));
    return 0;
  }
  if (arguments.list_passes) {
    Console::Print(PassList());
    return 0;
  }
  if (arguments.run.model.empty()) return UsageError("missing argument MODEL");
  RETURN_IF_ERROR(CheckTogether(options, arguments.run));
  const OptionTexts defaults = options.GivenTexts();
  ASSIGN_OR_RETURN(const PassPipeline pipeline, PassRegistry::Default().MakePipeline(arguments.passes, &defaults));
  ASSIGN_OR_RETURN(Program program, ReadProgram(arguments));
  RETURN_IF_ERROR(VerifyProgram(program));
  RETURN_IF_ERROR(pipeline.Run(program));
  RETURN_IF_ERROR(Write(arguments, WriteProgramText(program, {arguments.full})));
  return 0;
}

}  // namespace onnxtrain
