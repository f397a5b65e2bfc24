// SPDX-License-Identifier: Apache-2.0
// onnx-train test: ONNX backend test folders.
#include "tools/command.h"

#include <map>
#include <nlohmann/json.hpp>

#include "tools/backend_test.h"
#include "tools/console.h"
#include "tools/environment.h"
#include "tools/option_set.h"

namespace onnxtrain {
namespace {

struct TestArguments {
  std::vector<std::string> folders;
  int64_t threads = 0;
  bool json = false;
  bool quiet = false;
};

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

int64_t CountOf(const std::vector<TestResult>& results, TestOutcome outcome) {
  int64_t count = 0;
  for (const TestResult& result : results) count += result.outcome == outcome ? 1 : 0;
  return count;
}

std::map<std::string, int64_t> SkippedByOp(const std::vector<TestResult>& results) {
  std::map<std::string, int64_t> counts;
  for (const TestResult& result : results) {
    if (result.outcome == TestOutcome::kSkipped) ++counts[result.op];
  }
  return counts;
}

void PrintJson(const std::vector<TestResult>& results) {
  nlohmann::ordered_json json;
  json["passed"] = CountOf(results, TestOutcome::kPassed);
  json["failed"] = CountOf(results, TestOutcome::kFailed);
  json["skipped"] = CountOf(results, TestOutcome::kSkipped);
  json["failures"] = nlohmann::ordered_json::array();
  json["skips"] = nlohmann::ordered_json::array();
  for (const TestResult& result : results) {
    if (result.outcome == TestOutcome::kFailed)
      json["failures"].push_back({{"folder", result.folder}, {"reason", result.reason}});
    if (result.outcome == TestOutcome::kSkipped) {
      json["skips"].push_back({{"folder", result.folder}, {"op", result.op}, {"reason", result.reason}});
    }
  }
  json["skipped_by_op"] = nlohmann::ordered_json::object();
  for (const auto& [op, count] : SkippedByOp(results)) json["skipped_by_op"][op] = count;
  Console::Print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void PrintText(const std::vector<TestResult>& results) {
  for (const TestResult& result : results) {
    if (result.outcome == TestOutcome::kSkipped)
      Console::Print("skipped " + result.folder + ": " + FirstLine(result.reason));
  }
  for (const TestResult& result : results) {
    if (result.outcome == TestOutcome::kFailed) Console::Print("FAILED  " + result.folder + ": " + result.reason);
  }
  std::string by_op;
  for (const auto& [op, count] : SkippedByOp(results))
    by_op += (by_op.empty() ? "" : ", ") + op + " " + std::to_string(count);
  if (!by_op.empty()) Console::Print("skipped by operator: " + by_op);
  Console::Print(std::to_string(CountOf(results, TestOutcome::kPassed)) + " passed, " +
                 std::to_string(CountOf(results, TestOutcome::kFailed)) + " failed, " +
                 std::to_string(CountOf(results, TestOutcome::kSkipped)) + " skipped");
}

}  // namespace

StatusOr<int> RunTest(const std::vector<std::string>& raw) {
  TestArguments arguments;
  OptionSet options;
  options.Positional("DIR...", &arguments.folders, 1, SIZE_MAX);
  options.Int("threads", &arguments.threads, "T", "compute threads", 1);
  options.Flag("json", &arguments.json, "stdout becomes one JSON document");
  options.Flag("quiet", &arguments.quiet, "no progress on stderr");
  RETURN_IF_ERROR(options.Parse(raw));
  if (options.help_wanted()) {
    Console::Print(options.Help(
        "test", "runs ONNX backend test folders: model.onnx, test_data_set_*; exit code 1 when one fails"));
    return 0;
  }
  std::vector<std::string> folders;
  for (const std::string& folder : arguments.folders) {
    ASSIGN_OR_RETURN(const std::vector<std::string> found, FindTestFolders(folder));
    folders.insert(folders.end(), found.begin(), found.end());
  }
  Console console(arguments.quiet);
  const int threads = arguments.threads > 0 ? static_cast<int>(arguments.threads) : DefaultThreads();
  std::vector<TestResult> results;
  for (size_t i = 0; i < folders.size(); ++i) {
    results.push_back(RunTestFolder(folders[i], threads));
    if (console.terminal())
      console.Progress(static_cast<int64_t>(i + 1), static_cast<int64_t>(folders.size()), folders[i]);
  }
  console.EndProgress();
  arguments.json ? PrintJson(results) : PrintText(results);
  return CountOf(results, TestOutcome::kFailed) == 0 ? 0 : 1;
}

}  // namespace onnxtrain
