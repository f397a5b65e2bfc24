// SPDX-License-Identifier: Apache-2.0
#include "tools/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace onnxtrain {
namespace {

constexpr int kBarCells = 24;

std::string Bar(int64_t done, int64_t total) {
  const int full = total > 0 ? static_cast<int>(done * kBarCells / total) : 0;
  std::string bar;
  for (int i = 0; i < kBarCells; ++i) bar += i < full ? "━" : "╌";
  return bar;
}

// `text` cut so that it stays on one line behind the bar: a line that wraps cannot be redrawn.
std::string Fitting(const std::string& text) {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const size_t columns = known ? size.ws_col : 80;
  const size_t bar = kBarCells + 2;
  return text.substr(0, columns > bar ? columns - bar : 0);
}

}  // namespace

Console::Console(bool quiet)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0), colour_(terminal_ && std::getenv("NO_COLOR") == nullptr) {}

void Console::Error(std::string_view text) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
}

void Console::Note(std::string_view text) {
  if (quiet_) return;
  EndProgress();
  Error(text);
}

void Console::Progress(int64_t done, int64_t total, std::string_view text) {
  if (quiet_) return;
  const std::string line(text);
  if (!terminal_) {
    Error(line);
    return;
  }
  std::fprintf(stderr, "\r\x1b[K%s%s%s %s", colour_ ? "\x1b[36m" : "", Bar(done, total).c_str(),
               colour_ ? "\x1b[0m" : "", Fitting(line).c_str());
  std::fflush(stderr);
  bar_shown_ = true;
}

void Console::EndProgress() {
  if (!bar_shown_) return;
  std::fputs("\n", stderr);
  bar_shown_ = false;
}

void Console::Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputs("\n", stdout);
}

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += (text.empty() ? "" : "\n") + line;
  }
  return text;
}

}  // namespace onnxtrain
