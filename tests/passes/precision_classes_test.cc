// SPDX-License-Identifier: Apache-2.0
#include "passes/precision_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

TEST(PrecisionClasses, ListsOnlyOperatorsThatThereAre) {
  for (const PrecisionRule& rule : PrecisionRules()) {
    EXPECT_NE(OpRegistry::Default().Find(rule.op), nullptr) << rule.op;
    EXPECT_NE(rule.precision_class, PrecisionClass::kSingle) << rule.op;
  }
}

TEST(PrecisionClasses, AreSortedAndUnique) {
  std::set<std::string_view> seen;
  const std::span<const PrecisionRule> rules = PrecisionRules();
  for (const PrecisionRule& rule : rules) EXPECT_TRUE(seen.insert(rule.op).second) << rule.op;
  EXPECT_TRUE(std::is_sorted(rules.begin(), rules.end(), [](const PrecisionRule& a, const PrecisionRule& b) {
    return std::pair(a.precision_class, a.op) < std::pair(b.precision_class, b.op);
  }));
}

TEST(PrecisionClasses, UnlistedOperatorsStayInFloat) {
  for (const char* op : {"ReduceMean", "Exp", "LogSoftmax", "SoftmaxCrossEntropyLoss", "Cast"}) {
    EXPECT_EQ(FindPrecisionRule(op), nullptr) << op;
  }
}

// The table of docs/mixed_precision.md: "| half | `Conv`, `Gemm`, ... |".
std::map<std::string, std::set<std::string>> DocumentedClasses() {
  std::ifstream file(std::string(ONNXTRAIN_SOURCE_DIR) + "/docs/mixed_precision.md");
  std::map<std::string, std::set<std::string>> classes;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("| ", 0) != 0) continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    std::istringstream quoted(line);
    std::string part;
    for (bool inside = false; std::getline(quoted, part, '`'); inside = !inside) {
      if (inside) classes[name].insert(part);
    }
  }
  return classes;
}

TEST(PrecisionClasses, AreThoseOfTheDocument) {
  const auto documented = DocumentedClasses();
  std::map<std::string, std::set<std::string>> listed;
  for (const PrecisionRule& rule : PrecisionRules()) {
    listed[std::string(NameOf(rule.precision_class))].insert(std::string(rule.op));
  }
  for (const auto& [name, ops] : listed) {
    ASSERT_TRUE(documented.contains(name)) << "docs/mixed_precision.md has no row '" << name << "'";
    EXPECT_EQ(documented.at(name), ops) << "row '" << name << "' of docs/mixed_precision.md";
  }
}

}  // namespace
}  // namespace onnxtrain
