// SPDX-License-Identifier: Apache-2.0
// What depends on slices: draws of Dropout, running statistics, labels that do not count.
#include <gtest/gtest.h>

#include "graph/op_registry.h"
#include "graph/program_text.h"
#include "passes/standard_pipeline.h"
#include "tests/passes/sliced_training.h"
#include "tests/support/planned_runner.h"

namespace onnxtrain {
namespace {

constexpr int64_t kRows = 40;

struct Spread {
  int ranks;
  int accumulation;
  int zero;
};

// The same steps by proved plans on rank threads: the same bits.
void ExpectPlannedRunAgrees(const Program& program, int steps, const NamedTensors& expected) {
  auto planned = PlannedRunner::Create(program, SeededState(program, kStateSeed));
  ASSERT_TRUE(planned.ok()) << planned.status().message();
  for (int step = 0; step < steps; ++step) {
    const Status run = (*planned)->Step(SliceOf(kRows, step, program.accumulation));
    ASSERT_TRUE(run.ok()) << run.message();
  }
  StatusOr<NamedTensors> state = (*planned)->CanonicalState();
  ASSERT_TRUE(state.ok()) << state.status().message();
  for (const auto& [name, tensor] : *state) {
    SCOPED_TRACE(name + " of the planned run");
    ExpectIdentical(tensor, expected.at(name));
  }
}

StatusOr<NamedTensors> Train(const std::string& model, PipelineOptions options, const Spread& spread, int steps = 3) {
  std::string text = model;
  const std::string rows = std::to_string(kRows / spread.ranks / spread.accumulation);
  for (size_t at = text.find("N,"); at != std::string::npos; at = text.find("N,")) text.replace(at, 1, rows);
  ASSIGN_OR_RETURN(Program program, ReadProgramText(text));
  options.ranks = spread.ranks;
  options.accumulation = spread.accumulation;
  options.zero = spread.zero;
  ASSIGN_OR_RETURN(const PassPipeline pipeline, StandardPipeline(options));
  RETURN_IF_ERROR(pipeline.Run(program));
  ASSIGN_OR_RETURN(NamedTensors results, TrainSliced(program, kRows, steps));
  ExpectPlannedRunAgrees(program, steps, results);
  return results;
}

void ExpectSame(const StatusOr<NamedTensors>& actual, const StatusOr<NamedTensors>& expected) {
  ASSERT_TRUE(actual.ok()) << actual.status().message();
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  ASSERT_EQ(actual->size(), expected->size());
  for (const auto& [name, tensor] : *expected) {
    SCOPED_TRACE(name);
    ExpectNear(actual->at(name), tensor, 1e-8);
  }
}

PipelineOptions Options(LossKind loss) {
  PipelineOptions options;
  options.loss.kind = loss;
  options.optimizer.schedule.lr = 0.05;
  return options;
}

// A draw belongs to a slice of the global batch, whoever computes it and with or without shards.
TEST(TrainingForm, DrawsOfDropoutBelongToSlices) {
  const std::string model = R"(< ir_version: 10, opset_import: ["" : 24] >
step (double[N,7] x) => (double[N,5] y)
<double[7,5] w, double ratio = {0.5}, bool yes = {1}>
{
  h = MatMul (x, w)
  y = Dropout (h, ratio, yes)
}
)";
  const PipelineOptions options = Options(LossKind::kMeanSquaredError);
  const StatusOr<NamedTensors> four_ranks = Train(model, options, {4, 1, 0});
  ExpectSame(Train(model, options, {2, 2, 1}), four_ranks);
  ExpectSame(Train(model, options, {1, 4, 0}), four_ranks);
  PipelineOptions other_seed = options;
  other_seed.mode.seed = 1;
  const StatusOr<NamedTensors> other = Train(model, other_seed, {4, 1, 0});
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_FALSE(other->at("parameter/w").Identical(four_ranks->at("parameter/w")));
}

// A fifth of the labels does not count, and they lie on the first ranks: with eight ranks the first has none that
// counts.
TEST(TrainingForm, RanksAreWeightedByCountedLabels) {
  const std::string model = R"(< ir_version: 10, opset_import: ["" : 24] >
step (double[N,7] x) => (double[N,5] y)
<double[7,5] w, double[5] b>
{
  h = MatMul (x, w)
  y = Add (h, b)
}
)";
  for (const double smoothing : {0.0, 0.1}) {
    PipelineOptions options = Options(LossKind::kCrossEntropy);
    options.loss.label_smoothing = smoothing;
    options.optimizer.clip = 0.1;
    const StatusOr<NamedTensors> one_rank = Train(model, options, {1, 1, 0});
    for (const Spread& spread : {Spread{8, 1, 0}, Spread{2, 4, 2}, Spread{5, 1, 1}, Spread{1, 8, 0}}) {
      SCOPED_TRACE(std::to_string(spread.ranks) + " ranks, " + std::to_string(spread.accumulation) + " micro-batches");
      ExpectSame(Train(model, options, spread), one_rank);
    }
  }
}

// Gradients that are known ahead of time: constants, and one value for two parameters.
TEST(TrainingForm, ConstantAndSharedGradientsAreReducedLikeOthers) {
  const std::string model = R"(< ir_version: 10, opset_import: ["" : 24] >
step (double[N,5] x) => (double[N,5] y)
<double[5] a, double[5] b>
{
  h = Add (x, a)
  y = Add (h, b)
}
)";
  const PipelineOptions options = Options(LossKind::kMean);
  const StatusOr<NamedTensors> one_rank = Train(model, options, {1, 1, 0});
  for (const Spread& spread : {Spread{2, 1, 0}, Spread{2, 1, 1}, Spread{2, 4, 2}, Spread{1, 4, 0}}) {
    SCOPED_TRACE(std::to_string(spread.ranks) + " ranks, " + std::to_string(spread.accumulation) + " micro-batches");
    ExpectSame(Train(model, options, spread), one_rank);
  }
}

constexpr const char* kBatchNorm = R"(< ir_version: 10, opset_import: ["" : 24],
  metadata_props: ["state.w": "parameter", "state.s": "parameter", "state.b": "parameter", "state.mean": "buffer",
                   "state.var": "buffer"] >
step (double[N,7] x) => (double[N,5] y)
<double[7,5] w, double[5] s, double[5] b, double[5] mean, double[5] var>
{
  h = MatMul (x, w)
  y, mean_out, var_out = BatchNormalization <momentum = 0.75, training_mode = 1> (h, s, b, mean, var)
}
)";

// With a rate of zero, micro-batches and ranks see the same weights: rank 0's statistics go through its own slices in
// order.
TEST(TrainingForm, RunningStatisticsGoThroughMicroBatchesInOrder) {
  PipelineOptions options = Options(LossKind::kMeanSquaredError);
  options.optimizer.schedule.lr = 0;
  const StatusOr<NamedTensors> whole = Train(kBatchNorm, options, {1, 4, 0}, 1);
  const StatusOr<NamedTensors> sharded = Train(kBatchNorm, options, {1, 4, 2}, 1);
  ExpectSame(sharded, whole);
  const StatusOr<NamedTensors> two_ranks = Train(kBatchNorm, options, {2, 2, 2}, 1);
  ASSERT_TRUE(two_ranks.ok()) << two_ranks.status().message();
  const StatusOr<NamedTensors> four_ranks = Train(kBatchNorm, options, {4, 1, 0}, 1);
  ASSERT_TRUE(four_ranks.ok()) << four_ranks.status().message();
  ExpectNear(two_ranks->at("loss0"), whole->at("loss0"), 1e-9);
  ExpectNear(four_ranks->at("grad_norm0"), whole->at("grad_norm0"), 1e-9);
  // Rank 0 of four has seen one micro-batch, of two the first two, alone all four: each moves on by momentum.
  EXPECT_FALSE(four_ranks->at("buffer/mean").Identical(two_ranks->at("buffer/mean")));
  EXPECT_FALSE(two_ranks->at("buffer/mean").Identical(whole->at("buffer/mean")));
}

// Mean of column `column` of x w over rows [begin, end).
double MeanOfProduct(const Tensor& x, const Tensor& w, int64_t begin, int64_t end, int64_t column) {
  double sum = 0;
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t k = 0; k < 7; ++k) sum += x.DoubleAt(row * 7 + k) * w.DoubleAt(k * 5 + column);
  }
  return sum / static_cast<double>(end - begin);
}

TEST(TrainingForm, RunningMeanIsWhatTheFormulaSays) {
  PipelineOptions options = Options(LossKind::kMeanSquaredError);
  options.optimizer.schedule.lr = 0;
  const StatusOr<NamedTensors> before = Train(kBatchNorm, options, {1, 2, 0}, 0);
  const StatusOr<NamedTensors> after = Train(kBatchNorm, options, {1, 2, 0}, 1);
  ASSERT_TRUE(before.ok() && after.ok());
  Graph graph(OpRegistry::Default());
  const Tensor x = GlobalBatch(*graph.AddInput("x", {DType::kDouble, {kRows, 7}}), kRows, 0);
  for (int64_t column = 0; column < 5; ++column) {
    double mean = before->at("buffer/mean").DoubleAt(column);
    for (const int64_t begin : {int64_t{0}, kRows / 2}) {
      mean = 0.75 * mean + 0.25 * MeanOfProduct(x, before->at("parameter/w"), begin, begin + kRows / 2, column);
    }
    EXPECT_NEAR(after->at("buffer/mean").DoubleAt(column), mean, 1e-9);
  }
}

}  // namespace
}  // namespace onnxtrain
