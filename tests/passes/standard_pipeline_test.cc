// SPDX-License-Identifier: Apache-2.0
// One rank with the whole batch = many ranks, ZeRO stages, micro-batches and bucket sizes, in double.
#include "passes/standard_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "graph/program_text.h"
#include "tests/passes/sliced_training.h"
#include "tests/support/planned_runner.h"

namespace onnxtrain {
namespace {

constexpr int64_t kGlobalBatch = 72;  // divides by every rank and micro-batch below
constexpr int kSteps = 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Frozen, unused and tied parameters, sizes that divide by nothing, two element types.
std::string ModelText(int64_t batch) {
  const std::string n = std::to_string(batch);
  return R"(< ir_version: 10, opset_import: ["" : 24, "onnxtrain" : 1],
  metadata_props: ["state.w1": "parameter", "state.b1": "parameter", "state.tied": "parameter", "state.f": "frozen",
                   "state.unused": "parameter", "state.narrow": "parameter"] >
step (double[)" +
         n + R"(,7] x) => (double[)" + n + R"(,5] y)
<double[7,13] w1, double[13] b1, double[13,13] tied, double[13] f, double[3] unused, float[13,5] narrow>
{
  h1 = MatMul (x, w1)
  h2 = Add (h1, b1)
  h3 = Tanh (h2)
  h4 = Mul (h3, f)
  h5 = MatMul (h4, tied)
  h6 = Tanh (h5)
  tied_t = Transpose <perm = [1, 0]> (tied)
  h7 = MatMul (h6, tied_t)
  wide = Cast <to = 11> (narrow)
  y = MatMul (h7, wide)
}
)";
}

struct Setting {
  int ranks = 1;
  int zero = 0;
  int accumulation = 1;
  double bucket_bytes = kInfinity;
};

PipelineOptions OptionsOf(const Setting& setting) {
  PipelineOptions options;
  options.loss.kind = LossKind::kMeanSquaredError;
  options.optimizer.method = OptimizerMethod::kAdamW;
  options.optimizer.schedule.lr = 0.05;
  options.optimizer.clip = 0.5;
  options.optimizer.no_decay = {"rank<2"};
  options.optimizer.groups = {{"w*", 0.01, std::nullopt}};
  options.ranks = setting.ranks;
  options.zero = setting.zero;
  options.accumulation = setting.accumulation;
  if (setting.bucket_bytes > 0) options.buckets.bucket_bytes = setting.bucket_bytes;
  return options;
}

StatusOr<Program> BuildProgram(int64_t local_batch, const Setting& setting) {
  ASSIGN_OR_RETURN(Program program, ReadProgramText(ModelText(local_batch)));
  ASSIGN_OR_RETURN(const PassPipeline pipeline, StandardPipeline(OptionsOf(setting)));
  RETURN_IF_ERROR(pipeline.Run(program));
  return program;
}

void ExpectSame(const NamedTensors& actual, const NamedTensors& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(actual.contains(name));
    ExpectNear(actual.at(name), tensor, tensor.dtype() == DType::kFloat ? 1e-5 : 1e-8);
  }
}

const NamedTensors& OneRank() {
  static const NamedTensors results = [] {
    StatusOr<Program> program = BuildProgram(kGlobalBatch, {});
    CHECK_WITH(program.ok(), program.status().message());
    StatusOr<NamedTensors> trained = TrainSliced(*program, kGlobalBatch, kSteps);
    CHECK_WITH(trained.ok(), trained.status().message());
    return *std::move(trained);
  }();
  return results;
}

TEST(StandardPipeline, ManyRanksMicroBatchesStagesAndBucketsGiveOneRanksResult) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const int accumulation : {1, 3}) {
      for (const int zero : {0, 1, 2}) {
        for (const double bytes : {1.0, 1000.0, kInfinity, 0.0}) {
          SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(accumulation) + " micro-batches, stage " +
                       std::to_string(zero) + ", buckets of " + std::to_string(bytes) + " bytes");
          const Setting setting{ranks, zero, accumulation, bytes};
          StatusOr<Program> program = BuildProgram(kGlobalBatch / ranks / accumulation, setting);
          ASSERT_TRUE(program.ok()) << program.status().message();
          StatusOr<NamedTensors> trained = TrainSliced(*program, kGlobalBatch, kSteps);
          ASSERT_TRUE(trained.ok()) << trained.status().message();
          ExpectSame(*trained, OneRank());
        }
      }
    }
  }
}

// The plans, proved and carried out by rank threads, give the bits of the graphs run in lock-step.
TEST(StandardPipeline, PlannedRunsOnRankThreadsGiveTheInterpretersBits) {
  for (const Setting& setting : {Setting{1, 0, 1, 0.0}, Setting{2, 0, 3, 1.0}, Setting{3, 1, 1, 0.0},
                                 Setting{4, 2, 3, 500.0}, Setting{8, 1, 3, kInfinity}}) {
    SCOPED_TRACE(std::to_string(setting.ranks) + " ranks, stage " + std::to_string(setting.zero));
    StatusOr<Program> program = BuildProgram(kGlobalBatch / setting.ranks / setting.accumulation, setting);
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto interpreter = ProgramRunner::Create(*program, OneRank());
    auto planned = PlannedRunner::Create(*program, OneRank());
    ASSERT_TRUE(interpreter.ok() && planned.ok()) << planned.status().message();
    for (int step = 0; step < kSteps; ++step) {
      const FeedSource feeds = SliceOf(kGlobalBatch, step, setting.accumulation);
      const Status first = (*interpreter)->Step(feeds);
      const Status second = (*planned)->Step(feeds);
      ASSERT_TRUE(first.ok() && second.ok()) << first.message() << second.message();
    }
    StatusOr<NamedTensors> expected = (*interpreter)->CanonicalState();
    StatusOr<NamedTensors> actual = (*planned)->CanonicalState();
    ASSERT_TRUE(expected.ok() && actual.ok());
    ASSERT_EQ(actual->size(), expected->size());
    for (const auto& [name, tensor] : *expected) {
      SCOPED_TRACE(name);
      ExpectIdentical(actual->at(name), tensor);
    }
  }
}

TEST(StandardPipeline, UnusedAndFrozenParametersStayAsTheyAre) {
  StatusOr<Program> program = BuildProgram(kGlobalBatch, {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  const NamedTensors before = SeededState(*program, kStateSeed);
  for (const char* name : {"frozen/f", "parameter/unused"}) {
    SCOPED_TRACE(name);
    ExpectIdentical(OneRank().at(name), before.at(name));
  }
  EXPECT_EQ(OneRank().count("moment1/unused"), 0u);
}

// The samples of one rank, trained by three of which two are idle.
TEST(StandardPipeline, IdleRanksChangeNothing) {
  for (const int accumulation : {1, 2}) {
    for (const int zero : {0, 1, 2}) {
      SCOPED_TRACE(std::to_string(accumulation) + " micro-batches, stage " + std::to_string(zero));
      StatusOr<Program> program = BuildProgram(kGlobalBatch / accumulation, {3, zero, accumulation, kInfinity});
      ASSERT_TRUE(program.ok()) << program.status().message();
      auto runner = ProgramRunner::Create(*program, SeededState(*program, kStateSeed));
      ASSERT_TRUE(runner.ok()) << runner.status().message();
      for (int step = 0; step < kSteps; ++step) {
        const Status run = (*runner)->Step(SliceOf(kGlobalBatch, step, accumulation), {false, true, true});
        ASSERT_TRUE(run.ok()) << run.message();
      }
      StatusOr<NamedTensors> state = (*runner)->CanonicalState();
      ASSERT_TRUE(state.ok()) << state.status().message();
      for (const auto& [name, tensor] : *state) {
        SCOPED_TRACE(name);
        ExpectNear(tensor, OneRank().at(name), tensor.dtype() == DType::kFloat ? 1e-5 : 1e-8);
      }
    }
  }
}

// Without samples anywhere there is no mean: nothing but the count of attempts moves.
TEST(StandardPipeline, AStepOfIdleRanksIsNotApplied) {
  StatusOr<Program> program = BuildProgram(8, {2, 1, 1, kInfinity});
  ASSERT_TRUE(program.ok()) << program.status().message();
  const NamedTensors before = SeededState(*program, kStateSeed);
  auto runner = ProgramRunner::Create(*program, before);
  ASSERT_TRUE(runner.ok()) << runner.status().message();
  const Status run = (*runner)->Step(SliceOf(kGlobalBatch, 0, 1), {true, true});
  ASSERT_TRUE(run.ok()) << run.message();
  StatusOr<NamedTensors> state = (*runner)->CanonicalState();
  ASSERT_TRUE(state.ok()) << state.status().message();
  for (const auto& [name, tensor] : *state) {
    SCOPED_TRACE(name);
    if (name == "counter/attempt") {
      EXPECT_EQ(tensor.IntAt(0), before.at(name).IntAt(0) + 1);
    } else {
      ExpectIdentical(tensor, before.at(name));
    }
  }
}

TEST(StandardPipeline, EvaluationReadsTheStateOfTheLastStep) {
  StatusOr<Program> whole = BuildProgram(kGlobalBatch, {});
  StatusOr<Program> sharded = BuildProgram(kGlobalBatch, {3, 1, 1, 1.0});
  ASSERT_TRUE(whole.ok() && sharded.ok());
  NamedTensors outputs[2];
  int index = 0;
  for (const Program* program : {&*whole, &*sharded}) {
    auto runner = ProgramRunner::Create(*program, OneRank());
    ASSERT_TRUE(runner.ok()) << runner.status().message();
    const Status run =
        (*runner)->Evaluate([](const Value& input, int, int) { return GlobalBatch(input, kGlobalBatch, 5); });
    ASSERT_TRUE(run.ok()) << run.message();
    outputs[index++] = (*runner)->OutputsOf(0);
  }
  EXPECT_EQ(outputs[0].count("loss_sum"), 1u);
  ExpectSame(outputs[1], outputs[0]);
}

TEST(StandardPipeline, AnotherBatchShapeKeepsLayoutStateTableAndCollectives) {
  const Setting setting{2, 1, 1, 0.0};
  StatusOr<Program> full = BuildProgram(12, setting);
  ASSERT_TRUE(full.ok()) << full.status().message();
  StatusOr<Program> partial = ReadProgramText(ModelText(5));
  ASSERT_TRUE(partial.ok());
  PipelineOptions options = OptionsOf(setting);
  options.buckets.layout = full->layout();
  StatusOr<PassPipeline> pipeline = StandardPipeline(options);
  ASSERT_TRUE(pipeline.ok());
  const Status run = pipeline->Run(*partial);
  ASSERT_TRUE(run.ok()) << run.message();
  EXPECT_EQ(partial->layout().ToString(), full->layout().ToString());
  EXPECT_EQ(Digest(*partial), Digest(*full));
}

TEST(StandardPipeline, EqualInputsGiveEqualText) {
  const Setting setting{3, 2, 2, 1000.0};
  StatusOr<Program> a = BuildProgram(4, setting);
  StatusOr<Program> b = BuildProgram(4, setting);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(WriteProgramText(*a), WriteProgramText(*b));
}

// Each gradient meets one reduction, each bucket is gathered once, whatever the sizes.
TEST(StandardPipeline, EveryBucketHasOneReductionAndOneGather) {
  for (const double bytes : {1.0, 200.0, 1000.0, kInfinity}) {
    StatusOr<Program> program = BuildProgram(4, {3, 1, 1, bytes});
    ASSERT_TRUE(program.ok()) << program.status().message();
    std::multiset<int64_t> scattered;
    std::multiset<int64_t> gathered;
    for (const auto& node : program->FindGraph("step")->nodes()) {
      if (node->op() == "onnxtrain.ReduceScatter") scattered.insert(node->attributes().Int("bucket", -1));
      if (node->op() == "onnxtrain.AllGather") gathered.insert(node->attributes().Int("bucket", -1));
    }
    std::multiset<int64_t> buckets;
    for (size_t k = 0; k < program->layout().buckets().size(); ++k) buckets.insert(static_cast<int64_t>(k));
    EXPECT_EQ(scattered, buckets) << bytes;
    EXPECT_EQ(gathered, buckets) << bytes;
  }
}

TEST(StandardPipeline, RefusesAnUnknownStage) {
  PipelineOptions options;
  options.zero = 3;
  const StatusOr<PassPipeline> pipeline = StandardPipeline(options);
  ASSERT_FALSE(pipeline.ok());
  EXPECT_EQ(pipeline.status().code(), StatusCode::kUsage);
  EXPECT_THAT(pipeline.status().message(), ::testing::HasSubstr("--zero"));
}

}  // namespace
}  // namespace onnxtrain
