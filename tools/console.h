// SPDX-License-Identifier: Apache-2.0
// What people see: notes and progress on stderr, results on stdout. Colours and the moving bar only on a terminal;
// NO_COLOR and
// --quiet are honoured. Used by one thread.
#ifndef ONNXTRAIN_TOOLS_CONSOLE_H_
#define ONNXTRAIN_TOOLS_CONSOLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onnxtrain {

class Console {
 public:
  explicit Console(bool quiet);

  // A line on stderr, also when quiet.
  static void Error(std::string_view text);
  // A line on stderr unless quiet. The progress bar, if there is one, is taken away first.
  void Note(std::string_view text);
  // On a terminal: one line that is redrawn; elsewhere a plain line. `done` of `total`.
  void Progress(int64_t done, int64_t total, std::string_view text);
  void EndProgress();
  // A result on stdout.
  static void Print(std::string_view text);
  bool terminal() const { return terminal_; }

 private:
  const bool quiet_;
  const bool terminal_;
  const bool colour_;
  bool bar_shown_ = false;
};

// Columns padded to their widest cell; the first row is the heading.
std::string Table(const std::vector<std::vector<std::string>>& rows);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_CONSOLE_H_
