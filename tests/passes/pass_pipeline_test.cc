// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/program_text.h"
#include "passes/pass.h"

namespace onnxtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FunctionPass : public Pass {
 public:
  using Function = std::function<StatusOr<bool>(Program&)>;
  FunctionPass(std::string name, Function function) : name_(std::move(name)), function_(std::move(function)) {}
  std::string_view name() const override { return name_; }
  StatusOr<bool> Run(Program& program) const override { return function_(program); }

 private:
  std::string name_;
  Function function_;
};

Program TwoNodes() {
  StatusOr<Program> program = ReadProgramText(R"(
<ir_version: 10, opset_import: ["" : 24]>
step (float[2] x) => (float[2] y)
{
  a = Neg(x)
  y = Neg(a)
}
)");
  CHECK_WITH(program.ok(), program.status().message());
  return *std::move(program);
}

void Add(PassPipeline& pipeline, std::string name, FunctionPass::Function function) {
  pipeline.Add(std::make_unique<FunctionPass>(std::move(name), std::move(function)));
}

// Leaves the graph in an order in which y is computed before a.
StatusOr<bool> Disorder(Program& program) {
  Graph& graph = *program.FindGraph("step");
  graph.MoveBefore(graph.FindValue("y")->producer(), graph.FindValue("a")->producer());
  return true;
}

TEST(PassPipeline, RunsInOrderAndObserves) {
  PassPipeline pipeline;
  Add(pipeline, "first", [](Program&) { return false; });
  Add(pipeline, "second", [](Program& program) {
    Graph& graph = *program.FindGraph("step");
    graph.Rename(graph.FindValue("a"), "b");
    return true;
  });
  std::vector<std::string> seen;
  Program program = TwoNodes();
  const Status status = pipeline.Run(program, [&](const Pass& pass, bool changed, const Program& now) {
    seen.push_back(std::string(pass.name()) + (changed ? "+" : "-") +
                   now.FindGraph("step")->nodes().front()->output(0)->name());
    return OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(seen, ElementsAre("first-a", "second+b"));
}

TEST(PassPipeline, NamesThePassThatFails) {
  PassPipeline pipeline;
  Add(pipeline, "good", [](Program&) { return false; });
  Add(pipeline, "bad", [](Program&) -> StatusOr<bool> { return InvalidModelError("no loss"); });
  Program program = TwoNodes();
  const Status status = pipeline.Run(program);
  EXPECT_EQ(status.code(), StatusCode::kInvalidModel);
  EXPECT_THAT(status.message(), HasSubstr("pass bad: no loss"));
}

TEST(PassPipeline, VerifiesBeforeAndAfter) {
  PassPipeline pipeline;
  Add(pipeline, "disorder", Disorder);
  Program program = TwoNodes();
  EXPECT_THAT(pipeline.Run(program).message(), HasSubstr("after pass disorder"));

  Program broken = TwoNodes();
  ASSERT_TRUE(Disorder(broken).ok());
  EXPECT_THAT(PassPipeline().Run(broken).message(), HasSubstr("before the first pass"));
}

TEST(PassPipeline, ObserverMayStop) {
  PassPipeline pipeline;
  bool reached = false;
  Add(pipeline, "first", [](Program&) { return false; });
  Add(pipeline, "second", [&](Program&) { return reached = true; });
  Program program = TwoNodes();
  const Status status =
      pipeline.Run(program, [](const Pass&, bool, const Program&) { return ResourceExhaustedError("disk full"); });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_FALSE(reached);
}

}  // namespace
}  // namespace onnxtrain
