// SPDX-License-Identifier: Apache-2.0
// Memory by class and formula, plan.json and its text, on programs that the standard pipeline made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "graph/program_text.h"
#include "passes/standard_pipeline.h"
#include "runtime/persistent_placements.h"
#include "runtime/plan_json.h"
#include "runtime/plan_verifier.h"
#include "runtime/scheduler.h"

namespace onnxtrain {
namespace {

using testing::HasSubstr;

// Two layers whose sizes divide by nothing.
constexpr std::string_view kModel = R"(< ir_version: 10, opset_import: ["" : 24, "onnxtrain" : 1],
  metadata_props: ["state.w1": "parameter", "state.b1": "parameter", "state.w2": "parameter"] >
step (float[6,7] x) => (float[6,5] y)
<float[7,13] w1, float[13] b1, float[13,5] w2>
{
  h1 = MatMul (x, w1)
  h2 = Add (h1, b1)
  h3 = Tanh (h2)
  y = MatMul (h3, w2)
}
)";
constexpr size_t kParameterBytes = (7 * 13 + 13 + 13 * 5) * sizeof(float);

// An embedding and `layers` residual blocks of two products, as wide as a small transformer.
std::string DeepModel(int layers) {
  std::string states;
  std::string classes;
  std::string body = "  x0 = Gather <axis = 0> (table, ids)\n";
  const auto add_state = [&](const std::string& name, const std::string& type) {
    states += (states.empty() ? "" : ", ") + type + " " + name;
    classes += (classes.empty() ? "" : ", ") + ("\"state." + name + "\": \"parameter\"");
  };
  add_state("table", "float[512,128]");
  for (int layer = 0; layer < layers; ++layer) {
    const std::string i = std::to_string(layer);
    add_state("up" + i, "float[128,512]");
    add_state("down" + i, "float[512,128]");
    body += "  h" + i + " = MatMul (x" + i + ", up" + i + ")\n  a" + i + " = Relu (h" + i + ")\n  d" + i +
            " = MatMul (a" + i + ", down" + i + ")\n  x" + std::to_string(layer + 1) + " = Add (x" + i + ", d" + i +
            ")\n";
  }
  body += "  y = Relu (x" + std::to_string(layers) + ")\n";
  return "< ir_version: 10, opset_import: [\"\" : 24, \"onnxtrain\" : 1], metadata_props: [" + classes +
         "] >\nstep (int64[64] ids) => (float[64,128] y)\n<" + states + ">\n{\n" + body + "}\n";
}

struct Setting {
  int ranks = 1;
  int zero = 0;
  int accumulation = 1;
  std::optional<double> bucket_bytes = 1;  // none: the exact cut
  std::string model = std::string(kModel);
  double gbps = 10;
  DType compute = DType::kFloat;
  DType reduce = DType::kFloat;
};

Program MakeProgram(const Setting& setting) {
  StatusOr<Program> program = ReadProgramText(setting.model);
  CHECK_WITH(program.ok(), program.status().message());
  PipelineOptions options;
  options.loss.kind = LossKind::kMeanSquaredError;
  options.optimizer.method = OptimizerMethod::kAdamW;
  options.optimizer.clip = 1;
  options.precision.compute = setting.compute;
  options.buckets.reduce = setting.reduce;
  options.ranks = setting.ranks;
  options.zero = setting.zero;
  options.accumulation = setting.accumulation;
  options.buckets.bucket_bytes = setting.bucket_bytes;
  // Without sharding a bucket is all-reduced: twice the time of a reduce-scatter.
  options.buckets.cost.link_gbps = setting.zero == 0 ? setting.gbps / 2 : setting.gbps;
  if (setting.zero == 0) options.buckets.cost.link_latency_us *= 2;
  options.buckets.cost.world_size = setting.ranks;
  StatusOr<PassPipeline> pipeline = StandardPipeline(options);
  CHECK_WITH(pipeline.ok(), pipeline.status().message());
  const Status ran = pipeline->Run(*program);
  CHECK_WITH(ran.ok(), ran.message());
  return *std::move(program);
}

// The last graph of a step with its report.
struct Reported {
  explicit Reported(const Setting& setting) : program(MakeProgram(setting)), persistent(PlacePersistent(program)) {
    graph = program.FindGraph(setting.accumulation > 1 ? "last" : "step");
    ScheduleOptions options;
    options.persistent = &persistent;
    options.buckets_in_flight = setting.zero == 2 ? 2 : 0;
    StatusOr<ExecutionPlan> scheduled = Schedule(*graph, options);
    CHECK_WITH(scheduled.ok(), scheduled.status().message());
    plan = *std::move(scheduled);
    report = MakePlanReport(program, persistent, *graph, plan, setting.zero, CostModel(), {setting.gbps, 100});
  }
  size_t BytesOf(const std::string& name) const {
    for (const MemoryLine& line : report.memory.lines) {
      if (line.name == name) return line.bytes;
    }
    return 0;
  }

  Program program;
  PersistentPlacements persistent;
  const Graph* graph = nullptr;
  ExecutionPlan plan;
  PlanReport report;
};

TEST(PlanReport, MemoryEqualsItsFormulaForEveryStage) {
  for (int ranks : {1, 2, 3, 5, 8}) {
    for (int zero : {0, 1, 2}) {
      for (int accumulation : {1, 3}) {
        for (double bucket_bytes : {1.0, 300.0, std::numeric_limits<double>::infinity()}) {
          const Reported one({ranks, zero, accumulation, bucket_bytes});
          EXPECT_TRUE(one.report.memory.FormulasHold()) << ranks << " ranks, stage " << zero << ", " << accumulation
                                                        << " micro-batches, buckets of " << bucket_bytes << "\n"
                                                        << ToString(one.report.memory);
        }
      }
    }
  }
}

TEST(PlanReport, MemoryEqualsItsFormulaIn16Bits) {
  for (int zero : {0, 1, 2}) {
    for (DType reduce : {DType::kFloat, DType::kBfloat16}) {
      Setting setting{4, zero, 1, std::numeric_limits<double>::infinity()};
      setting.compute = DType::kBfloat16;
      setting.reduce = reduce;
      const Reported one(setting);
      EXPECT_TRUE(one.report.memory.FormulasHold()) << "stage " << zero << "\n" << ToString(one.report.memory);
      if (zero == 0) continue;
      EXPECT_LT(one.BytesOf("replicas"), one.BytesOf("parameters") * 4) << "gathered in float";
    }
  }
}

// What the exact cut of buckets promises, on the plan that comes of it: at most the latency of the collectives that
// must follow each other (last bucket, embedding, sums of the step) above what no cut can beat.
TEST(PlanReport, TheExactCutExposesLittleMoreThanTheBound) {
  for (double gbps : {1.0, 10.0, 100.0}) {
    for (int zero : {0, 1, 2}) {
      const Reported one({2, zero, 1, std::nullopt, DeepModel(8), gbps});
      const LinkReport& link = one.report.links[0];
      EXPECT_GE(link.exposed_us, link.bound_us - 1e-6);
      EXPECT_LE(link.exposed_us, 1.02 * link.bound_us + 4 * 20) << gbps << " Gbit/s, stage " << zero << "\n"
                                                                << PlanText(one.report);
    }
  }
}

// The formulas themselves, with numbers worked out by hand.
TEST(PlanReport, FormulasGiveTheBytesOfZeroStages) {
  const Reported replicated({2, 0});
  EXPECT_EQ(replicated.BytesOf("parameters"), kParameterBytes);
  EXPECT_EQ(replicated.BytesOf("moments"), 2 * kParameterBytes);
  EXPECT_EQ(replicated.BytesOf("replicas"), 0u);
  // A bucket a parameter, each padded to 2 * 128 elements.
  const size_t padded = 3 * 256 * sizeof(float);
  const Reported sharded({2, 1});
  EXPECT_EQ(sharded.BytesOf("parameters"), padded / 2);
  EXPECT_EQ(sharded.BytesOf("moments"), padded);
  EXPECT_EQ(sharded.BytesOf("replicas"), padded);
  EXPECT_EQ(sharded.BytesOf("in-flight buckets"), padded);
  EXPECT_EQ(Reported({2, 1, 3}).BytesOf("accumulators"), kParameterBytes);
  EXPECT_EQ(Reported({2, 2, 3}).BytesOf("accumulators"), padded / 2);
}

TEST(PlanReport, AWrongFormulaIsNoticed) {
  Reported one({2, 1});
  one.report.memory.lines[0].bytes += 4;
  EXPECT_FALSE(one.report.memory.FormulasHold());
}

TEST(PlanReport, AllGraphsOfAProgramAreProvedTogether) {
  for (int zero : {0, 1, 2}) {
    const Program program = MakeProgram({3, zero, 2, 300});
    const PersistentPlacements persistent = PlacePersistent(program);
    ScheduleOptions options;
    options.persistent = &persistent;
    options.buckets_in_flight = zero == 2 ? 2 : 0;
    std::vector<ExecutionPlan> plans;
    plans.reserve(program.graphs().size());
    std::vector<SessionPlan> session;
    for (const auto& [name, graph] : program.graphs()) {
      StatusOr<ExecutionPlan> plan = Schedule(graph, options);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      plans.push_back(*std::move(plan));
      session.push_back({&graph, &plans.back()});
    }
    EXPECT_GE(session.size(), 4u);
    EXPECT_THAT(FindSessionViolations(session), testing::IsEmpty()) << "stage " << zero;
  }
}

TEST(PlanReport, JsonHasThePinnedKeys) {
  const Reported one({2, 1});
  const nlohmann::json json = nlohmann::json::parse(PlanJson(one.report));
  for (const char* key : {"streams", "steps", "buckets", "memory", "exposed_us", "bound_us", "digest", "links"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["streams"], (nlohmann::json{"compute", "communication"}));
  EXPECT_EQ(json["steps"].size(), one.plan.steps.size());
  EXPECT_EQ(json["buckets"].size(), 3u);
  EXPECT_EQ(json["buckets"][0]["parameters"], (nlohmann::json{"w2"}));
  ASSERT_EQ(json["links"].size(), 2u);
  EXPECT_EQ(json["links"][1]["gbps"], 100);
  EXPECT_EQ(json["links"][0]["exposed_us"], json["exposed_us"]);
  EXPECT_GE(json["exposed_us"], json["bound_us"]);
}

TEST(PlanReport, TextShowsMemoryLinksAndSteps) {
  const Reported one({2, 1});
  const std::string text = PlanText(one.report);
  EXPECT_THAT(text, HasSubstr("moments             3072          = 2*(P+padding)/N = 3072\n"));
  EXPECT_THAT(text, HasSubstr("    10 Gbit/s  step "));
  EXPECT_THAT(text, HasSubstr("= onnxtrain.ReduceScatter ("));
}

}  // namespace
}  // namespace onnxtrain
