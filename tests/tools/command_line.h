// SPDX-License-Identifier: Apache-2.0
// Runs the real binary, as a user would, in a folder with small models and data.
#ifndef ONNXTRAIN_TESTS_TOOLS_COMMAND_LINE_H_
#define ONNXTRAIN_TESTS_TOOLS_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace onnxtrain {

struct CommandOptions {
  std::map<std::string, std::string> environment;  // beside that of the test
  int64_t file_size_limit = 0;                     // bytes that any file may have; 0: none
  int signal = 0;                                  // sent once `signal_when` holds; 0: none
  std::function<bool()> signal_when;
};

struct CommandResult {
  int exit_code = -1;  // minus the signal that ended it
  std::string out;
  std::string err;
};

// `arguments` as typed. In them and in the environment "{m}" is the folder of model fixtures, "{d}" the temporary
// folder.
class CommandLine {
 public:
  // Writes x.npy, y.npy and the like: see the source.
  CommandLine();

  CommandResult Run(const std::vector<std::string>& arguments, const CommandOptions& options = {}) const;
  // Fails the test unless the command ends with 0; its stdout.
  std::string RunOk(const std::vector<std::string>& arguments, const CommandOptions& options = {}) const;
  std::string Expand(std::string text) const;
  std::string Path(const std::string& name) const { return folder_.Path(name); }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

// "a b c" as arguments; two lists as one.
std::vector<std::string> Words(const std::string& text);
std::vector<std::string> operator+(std::vector<std::string> first, const std::vector<std::string>& second);

// Lines of a text file; none where there is no file.
std::vector<std::string> LinesOf(const std::string& path);
// Names in a folder, sorted; none where there is no folder.
std::vector<std::string> NamesIn(const std::string& folder);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_TOOLS_COMMAND_LINE_H_
