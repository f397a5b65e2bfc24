// SPDX-License-Identifier: Apache-2.0
#include "tools/pass_dump.h"

#include <cstdio>

#include "graph/program_text.h"
#include "runtime/file_system.h"
#include "runtime/forward_program.h"

namespace onnxtrain {
namespace {

Status WriteProgram(FileSystem& files, const std::string& folder, int number, std::string_view pass,
                    const Program& program) {
  char prefix[16];
  std::snprintf(prefix, sizeof(prefix), "/%02d-", number);
  const std::string text = WriteProgramText(program);
  return WriteFileAtomically(files, folder + prefix + std::string(pass) + ".onnxtxt",
                             [&](WritableFile& file) { return file.Append(std::string_view(text)); });
}

Status WriteAsRead(FileSystem& files, const std::string& folder, const OnnxModel& model,
                   const TrainingOptions& options) {
  ForwardProgramOptions build;
  build.local_batch = options.batch_size;
  if (!options.loss_on.empty()) build.outputs = {options.loss_on};
  ASSIGN_OR_RETURN(const ForwardProgram forward, BuildForwardProgram(model, options, build));
  return WriteProgram(files, folder, 0, "read", forward.program);
}

}  // namespace

StatusOr<TrainingProgram> BuildAndDump(const OnnxModel& model, const TrainingOptions& options,
                                       const std::string& folder) {
  TrainingProgramOptions build;
  build.local_batch = options.batch_size;
  if (folder.empty()) return BuildTrainingProgram(model, options, build);
  PosixFileSystem files;
  RETURN_IF_ERROR(files.Remove(folder));
  RETURN_IF_ERROR(files.CreateFolders(folder));
  RETURN_IF_ERROR(WriteAsRead(files, folder, model, options));
  int number = 0;
  build.observer = [&](const Pass& pass, bool, const Program& program) {
    return WriteProgram(files, folder, ++number, pass.name(), program);
  };
  return BuildTrainingProgram(model, options, build);
}

}  // namespace onnxtrain
