// SPDX-License-Identifier: Apache-2.0
// Plans as text: tests/golden/plan/<case>.onnxtxt holds a program with one graph, its first line the options of the
// scheduler
// ("# plan: overlap=off buckets_in_flight=1"); <case>.plan what must come of it. UPDATE_GOLDEN=1 writes the plans anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "graph/program_text.h"
#include "runtime/persistent_placements.h"
#include "runtime/plan_verifier.h"
#include "runtime/scheduler.h"

namespace onnxtrain {
namespace {

constexpr char kFolder[] = ONNXTRAIN_SOURCE_DIR "/tests/golden/plan";

std::string ReadText(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> Cases() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    if (file.path().extension() == ".onnxtxt") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

ScheduleOptions OptionsOf(const std::string& source) {
  std::istringstream line(source.substr(0, source.find('\n')));
  ScheduleOptions options;
  std::string word;
  line >> word >> word;
  CHECK_WITH(word == "plan:", "the first line must be '# plan: OPTION=VALUE ...'");
  while (line >> word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    CHECK_WITH(name == "overlap" || name == "buckets_in_flight", name);
    if (name == "overlap") options.overlap = value == "on";
    if (name == "buckets_in_flight") options.buckets_in_flight = std::stoi(value);
  }
  return options;
}

class PlanGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(PlanGolden, Holds) {
  const std::string stem = std::string(kFolder) + "/" + GetParam();
  const std::string source = ReadText(stem + ".onnxtxt");
  const StatusOr<Program> program = ReadProgramText(source);
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_EQ(program->graphs().size(), 1u);
  const Graph& graph = program->graphs().begin()->second;
  const PersistentPlacements persistent = PlacePersistent(*program);
  ScheduleOptions options = OptionsOf(source);
  options.persistent = &persistent;
  const StatusOr<ExecutionPlan> plan = Schedule(graph, options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const Status verified = VerifyPlan(graph, *plan);
  EXPECT_TRUE(verified.ok()) << verified.message();
  const std::string text = ToString(*plan, graph);
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(stem + ".plan") << text;
  EXPECT_EQ(text, ReadText(stem + ".plan"));
}

INSTANTIATE_TEST_SUITE_P(Plans, PlanGolden, ::testing::ValuesIn(Cases()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace onnxtrain
