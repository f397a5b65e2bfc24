// SPDX-License-Identifier: Apache-2.0
// docs/cuda_operators.md is the list of kernels as the backend has it. UPDATE_GOLDEN=1 writes it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/conformance/parity_cases.h"
#include "tests/support/backends.h"

namespace onnxtrain {
namespace {

class OperatorList : public testing::TestWithParam<std::string> {};

// An operator runs in 16 bits where a parity case runs it so.
std::map<std::string, bool> RunsIn16Bits() {
  std::map<std::string, bool> small;
  for (const ParityCase& c : AllParityCases()) {
    bool floating = false;
    for (const OpInput& input : c.inputs) floating = floating || (input.tensor && IsFloating(input.tensor->dtype()));
    small[c.op] = small[c.op] || (floating && !c.float_only);
  }
  return small;
}

std::string Lines(const std::vector<std::string>& names) {
  std::string text, line;
  for (const std::string& name : names) {
    const std::string entry = "`" + name + "`";
    if (line.size() + entry.size() + 2 > 118) {
      text += line + ",\n";
      line.clear();
    }
    line += (line.empty() ? "" : ", ") + entry;
  }
  return text + line + "\n";
}

std::string Document(const KernelRegistry& device, const KernelRegistry& cpu) {
  const std::map<std::string, bool> small = RunsIn16Bits();
  std::vector<std::string> every, one, host;
  for (const std::string& op : device.Ops()) {
    const auto found = small.find(op);
    (found != small.end() && found->second ? every : one).push_back(op);
  }
  for (const std::string& op : cpu.Ops()) {
    if (!device.Has(op)) host.push_back(op);
  }
  return "# Operators on CUDA devices\n\nMade from the backend's own list of kernels by the test `OperatorList`.\n\n"
         "## In float32, bfloat16 and float16\n\n" +
         Lines(every) +
         "\nIntegers and bools beside them as ONNX says; matrix products and additions in float64, too.\n\n"
         "## In the types that they have\n\nLogic, counting, control of a step, collectives.\n\n" +
         Lines(one) + "\n## On the host only\n\nRefused, or with `--fallback cpu` run by the CPU's kernels between copies.\n\n" +
         Lines(host);
}

TEST_P(OperatorList, DocumentIsTheBackends) {
  if (const std::string reason = WhyNot(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  const std::unique_ptr<Backend> backend = OpenTestBackend(GetParam(), 1);
  const std::string text = Document(backend->device(0).kernels(), *CpuKernels());
  const std::string path = std::string(ONNXTRAIN_SOURCE_DIR) + "/docs/cuda_operators.md";
  const char* update = std::getenv("UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream found;
  found << file.rdbuf();
  EXPECT_EQ(found.str(), text) << "UPDATE_GOLDEN=1 writes " << path;
}

INSTANTIATE_TEST_SUITE_P(Backends, OperatorList, testing::Values("cuda"), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace onnxtrain
