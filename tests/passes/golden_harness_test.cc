// SPDX-License-Identifier: Apache-2.0
// The proof that goldens and the program runner can fail.
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "graph/program_text.h"
#include "tests/support/golden.h"
#include "tests/support/program_runner.h"

namespace onnxtrain {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHeader = "< ir_version: 10, opset_import: [\"\" : 24, \"onnxtrain\" : 1]";

// A folder of one case that goes with the test.
class HarnessTest : public ::testing::Test {
 protected:
  HarnessTest()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("golden_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::create_directories(folder_ / "eliminate_dead_nodes");
  }
  ~HarnessTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / "eliminate_dead_nodes" / name, std::ios::binary) << text;
  }
  GoldenCase Case(const std::string& name) const {
    return {"eliminate_dead_nodes", name, (folder_ / "eliminate_dead_nodes").string()};
  }
  static std::string Before() {
    return "# pass: eliminate_dead_nodes\n" + std::string(kHeader) +
           " >\nstep (float[2] x) => (float[2] y)\n{\n  y = Relu (x)\n  z = Neg (y)\n}\n";
  }

  std::filesystem::path folder_;
};

TEST_F(HarnessTest, FindsCasesByFolderAndName) {
  Write("b.before.onnxtxt", "");
  Write("a.before.onnxtxt", "");
  const std::vector<GoldenCase> cases = FindGoldens(folder_.string());
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].pass, "eliminate_dead_nodes");
  EXPECT_EQ(cases[0].name, "a");
}

TEST_F(HarnessTest, ReportsAnotherText) {
  if (std::getenv("UPDATE_GOLDEN") != nullptr) GTEST_SKIP() << "UPDATE_GOLDEN writes the text instead";
  Write("case.before.onnxtxt", Before());
  Write("case.after.onnxtxt", "something else\n");
  static GoldenCase golden;  // the failure macros take no locals
  golden = Case("case");
  EXPECT_NONFATAL_FAILURE(CheckGolden(golden), "case.after.onnxtxt");
}

TEST_F(HarnessTest, ReportsAMissingRefusal) {
  Write("refuses_case.before.onnxtxt", Before());
  static GoldenCase golden;
  golden = Case("refuses_case");
  EXPECT_FATAL_FAILURE(CheckGolden(golden), "was to refuse");
}

TEST_F(HarnessTest, ReportsAnUnknownPass) {
  Write("case.before.onnxtxt", "# pass: eliminate_everything\n" + Before());
  static GoldenCase golden;
  golden = Case("case");
  EXPECT_FATAL_FAILURE(CheckGolden(golden), "eliminate_everything");
}

StatusOr<NamedTensors> RunOnce(const std::string& text, const std::vector<std::string>& graphs) {
  ASSIGN_OR_RETURN(const Program program, ReadProgramText(text));
  ASSIGN_OR_RETURN(const std::unique_ptr<ProgramRunner> runner,
                   ProgramRunner::Create(program, SeededState(program, 1)));
  RETURN_IF_ERROR(runner->Run(graphs, [](const Value& input, int rank, int) {
    return RandomTensor(input.type().dtype, input.type().shape, static_cast<uint64_t>(rank));
  }));
  return runner->CanonicalState();
}

TEST(ProgramRunner, ReportsRanksThatMeetInDifferentCollectives) {
  const std::string text = std::string(kHeader) +
                           ", metadata_props: [\"world_size\": \"2\"] >\nstep (float[4] x) => ()\n"
                           "{\n  y = onnxtrain.AllReduce <op = \"sum\"> (x)\n}\n---\n" +
                           kHeader +
                           " >\nother (float[4] x) => ()\n{\n  y = onnxtrain.AllReduce <op = \"max\"> (x)\n}\n";
  EXPECT_TRUE(RunOnce(text, {"step", "step"}).ok());
  const StatusOr<NamedTensors> mixed = RunOnce(text, {"step", "other"});
  ASSERT_FALSE(mixed.ok());
  EXPECT_THAT(mixed.status().message(), HasSubstr("different collectives"));
}

TEST(ProgramRunner, ReportsARankThatWaitsForNobody) {
  const std::string text = std::string(kHeader) +
                           ", metadata_props: [\"world_size\": \"2\"] >\nstep (float[4] x) => ()\n"
                           "{\n  y = onnxtrain.AllReduce <op = \"sum\"> (x)\n}\n---\n" +
                           kHeader + " >\nother (float[4] x) => ()\n{\n  y = Neg (x)\n}\n";
  const StatusOr<NamedTensors> mixed = RunOnce(text, {"step", "other"});
  ASSERT_FALSE(mixed.ok());
  EXPECT_THAT(mixed.status().message(), HasSubstr("some ranks have ended"));
}

TEST(ProgramRunner, ReportsReplicatedStateThatDiffers) {
  const std::string text = std::string(kHeader) +
                           ", metadata_props: [\"world_size\": \"2\", \"update.w\": \"w2\"] >\n"
                           "step (float[4] x) => ()\n<float[4] w>\n{\n  w2 = Add (w, x)\n}\n";
  const StatusOr<NamedTensors> state = RunOnce(text, {"step", "step"});
  ASSERT_FALSE(state.ok());
  EXPECT_THAT(state.status().message(), HasSubstr("ranks differ in 'w'"));
}

TEST(ProgramRunner, ReportsPaddingThatIsNotZero) {
  const std::string text =
      std::string(kHeader) +
      ", metadata_props: [\"world_size\": \"2\", \"state.s\": \"parameter bucket=0 sharded parameter\","
      " \"layout\": \"world_size 2\", \"layout.0\": \"bucket float[256] 0=a[3]g0@0\", \"update.s\": \"s2\"] >\n"
      "step () => ()\n<float[128] s, float one = {1}>\n{\n  s2 = Add (s, one)\n}\n";
  const StatusOr<NamedTensors> state = RunOnce(text, {"step", "step"});
  ASSERT_FALSE(state.ok());
  EXPECT_THAT(state.status().message(), HasSubstr("padding of 's' on rank 0 is not zero"));
}

}  // namespace
}  // namespace onnxtrain
