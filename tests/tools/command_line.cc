// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/command_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "runtime/data/npy.h"
#include "runtime/data/npz.h"
#include "tests/support/status_matchers.h"

extern char** environ;

namespace onnxtrain {
namespace {

constexpr int64_t kSamples = 50;
constexpr int64_t kFeatures = 4;
constexpr int64_t kClasses = 3;
constexpr uint32_t kSeed = 7;
constexpr std::chrono::seconds kPatience(120);

Tensor Features(Shape shape) {
  Tensor tensor({DType::kFloat, std::move(shape)});
  std::mt19937 random(kSeed);
  for (float& value : tensor.values<float>()) value = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  return tensor;
}

Tensor Labels(int64_t samples) {
  Tensor tensor({DType::kInt64, {samples}});
  std::mt19937 random(kSeed + 1);
  for (int64_t& value : tensor.values<int64_t>()) value = static_cast<int64_t>(random() % kClasses);
  return tensor;
}

std::string Tokens(size_t count, uint16_t below) {
  std::mt19937 random(kSeed + 2);
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    const uint16_t token = static_cast<uint16_t>(random() % below);
    bytes += {static_cast<char>(token & 0xff), static_cast<char>(token >> 8)};
  }
  return bytes;
}

void WriteFixtures(const TemporaryFolder& folder) {
  PosixFileSystem files;
  const auto write = [&](const char* name, const Tensor& tensor) {
    ASSERT_OK(WriteNpy(files, folder.Path(name), tensor));
  };
  const Tensor x = Features({kSamples, kFeatures});
  write("x.npy", x);
  write("y.npy", Labels(kSamples));
  write("x64.npy", x.CastTo(DType::kDouble));
  write("x_wide.npy", Features({kSamples, kFeatures + 1}));
  write("x_cube.npy", Features({kSamples, 2, 2}));
  write("y_short.npy", Labels(kSamples - 10));
  Tensor outside = Labels(kSamples);
  outside.values<int64_t>()[37] = kClasses;
  write("y_outside.npy", outside);
  Tensor not_a_number = x;
  not_a_number.values<float>()[40 * kFeatures + 2] = std::numeric_limits<float>::quiet_NaN();
  write("x_nan.npy", not_a_number);
  const std::vector<NamedTensor> batch{{"x", Features({8, kFeatures})}, {"labels", Labels(8)}, {"other", Labels(2)}};
  ASSERT_OK(WriteNpz(files, folder.Path("batch.npz"), std::span<const NamedTensor>(batch)));
  folder.Write("tokens.bin", Tokens(500, 8));
  folder.Write("tokens_outside.bin", Tokens(500, 9));
}

std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& more) {
  std::map<std::string, std::string> variables{{"OMP_NUM_THREADS", "1"}, {"OMP_WAIT_POLICY", "passive"}};
  for (const auto& [name, value] : more) variables[name] = value;
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (variables.count(text.substr(0, text.find('='))) == 0) entries.push_back(text);
  }
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A file that is gone but open: output without a limit on its way.
int OpenScratch(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  EXPECT_GE(file, 0) << path;
  ::unlink(path.c_str());
  return file;
}

std::string Content(int file) {
  std::string text;
  char buffer[4096];
  ::lseek(file, 0, SEEK_SET);
  for (ssize_t count = ::read(file, buffer, sizeof(buffer)); count > 0; count = ::read(file, buffer, sizeof(buffer))) {
    text.append(buffer, static_cast<size_t>(count));
  }
  ::close(file);
  return text;
}

// Sends the signal when its time has come, and waits for the end.
int WaitFor(pid_t process, const CommandOptions& options) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  int status = 0;
  bool sent = options.signal == 0;
  while (::waitpid(process, &status, WNOHANG) == 0) {
    if (!sent && options.signal_when()) sent = ::kill(process, options.signal) == 0;
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "the command does not end";
      ::kill(process, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

CommandLine::CommandLine() { WriteFixtures(folder_); }

std::string CommandLine::Expand(std::string text) const {
  const std::pair<std::string, std::string> names[] = {{"{m}", ONNXTRAIN_TEST_DATA_DIR "/models"},
                                                       {"{d}", folder_.path()}};
  for (const auto& [name, path] : names) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + path.size())) {
      text.replace(at, name.size(), path);
    }
  }
  return text;
}

CommandResult CommandLine::Run(const std::vector<std::string>& arguments, const CommandOptions& options) const {
  std::vector<std::string> command{ONNXTRAIN_BINARY};
  for (const std::string& argument : arguments) command.push_back(Expand(argument));
  std::vector<std::string> environment = EnvironmentWith(options.environment);
  std::vector<char*> argv = Pointers(command), envp = Pointers(environment);
  const int out = OpenScratch(Path(".stdout")), err = OpenScratch(Path(".stderr"));
  const pid_t process = ::fork();
  if (process == 0) {
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    if (options.file_size_limit > 0) {
      const rlimit limit{static_cast<rlim_t>(options.file_size_limit), static_cast<rlim_t>(options.file_size_limit)};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  CommandResult result;
  result.exit_code = WaitFor(process, options);
  result.out = Content(out);
  result.err = Content(err);
  return result;
}

std::string CommandLine::RunOk(const std::vector<std::string>& arguments, const CommandOptions& options) const {
  const CommandResult result = Run(arguments, options);
  std::string command;
  for (const std::string& argument : arguments) command += " " + argument;
  EXPECT_EQ(result.exit_code, 0) << command << "\n" << result.err;
  return result.out;
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> operator+(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream stream(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace onnxtrain
