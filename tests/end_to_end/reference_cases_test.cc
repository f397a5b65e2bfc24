// SPDX-License-Identifier: Apache-2.0
// Every reference model trained as PyTorch trained it, cut over ranks, ZeRO stages, micro-batches and buckets: losses
// of all steps, first gradients and final parameters within the tolerances of the case.
#include <gtest/gtest.h>

#include <limits>

#include "tests/end_to_end/reference_case.h"

namespace onnxtrain {
namespace {

constexpr double kOneByte = 1.0 / 1048576;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The reference holds when the batch divides; batch statistics hold for the recorded ranks without accumulation only.
bool Applies(const ReferenceRun& run, const Cut& cut) {
  if (run.batch_statistics) return cut.ranks == run.reference_ranks && cut.accumulation == 1;
  return run.global_batch % (cut.ranks * cut.accumulation) == 0;
}

void ExpectCuts(const std::string& name, const std::vector<Cut>& cuts) {
  const std::vector<ReferenceRun> runs = LoadReferenceCase(name);
  if (runs.empty()) GTEST_SKIP() << "reference model " << name << " is not here";
  int trained = 0;
  for (const ReferenceRun& run : runs) {
    for (const Cut& cut : cuts) {
      if (!Applies(run, cut)) continue;
      SCOPED_TRACE(run.name + ": " + cut.ToString());
      ExpectReference(run, TrainCase(run, cut));
      ++trained;
    }
  }
  EXPECT_GT(trained, 0);
}

std::vector<Cut> AllCuts() {
  std::vector<Cut> cuts;
  for (int ranks : {1, 2, 3, 4, 5, 7, 8}) {
    for (int zero : {0, 1, 2}) {
      for (int accumulation : {1, 4}) {
        for (const std::optional<double>& bucket :
             {std::optional<double>(kOneByte), std::optional<double>(), std::optional<double>(kInfinite)}) {
          cuts.push_back({ranks, zero, accumulation, bucket});
        }
      }
    }
  }
  return cuts;
}

std::vector<Cut> FewCuts() {
  return {{1, 0, 1, {}}, {1, 0, 4, {}}, {2, 0, 1, {}},       {2, 1, 1, kOneByte},
          {2, 2, 4, {}}, {3, 1, 1, {}}, {4, 2, 1, kInfinite}};
}

TEST(ReferenceCases, RegressionMlp) { ExpectCuts("regression_mlp", FewCuts()); }
TEST(ReferenceCases, FrozenTied) { ExpectCuts("frozen_tied", FewCuts()); }
TEST(ReferenceCases, MnistCnn) { ExpectCuts("mnist_cnn", FewCuts()); }
TEST(ReferenceCases, MnistMlp) { ExpectCuts("mnist_mlp", {{1, 0, 1, {}}, {2, 1, 4, {}}}); }
TEST(ReferenceCases, GptTiny) { ExpectCuts("gpt_tiny", {{2, 1, 4, {}}}); }

TEST(ReferenceCases, SlowRegressionMlpCutEveryWay) { ExpectCuts("regression_mlp", AllCuts()); }
TEST(ReferenceCases, SlowFrozenTiedCutEveryWay) { ExpectCuts("frozen_tied", AllCuts()); }
TEST(ReferenceCases, SlowMnistCnnCutEveryWay) { ExpectCuts("mnist_cnn", AllCuts()); }
TEST(ReferenceCases, SlowMnistMlpCutEveryWay) { ExpectCuts("mnist_mlp", AllCuts()); }
TEST(ReferenceCases, SlowGptTinyCutEveryWay) { ExpectCuts("gpt_tiny", AllCuts()); }

class FirstGradients : public testing::TestWithParam<const char*> {};

TEST_P(FirstGradients, AreThoseOfPyTorch) {
  const std::vector<ReferenceRun> runs = LoadReferenceCase(GetParam());
  if (runs.empty()) GTEST_SKIP() << "reference model " << GetParam() << " is not here";
  for (const ReferenceRun& run : runs) {
    if (run.batch_statistics && run.reference_ranks != 1) continue;
    SCOPED_TRACE(run.name);
    ExpectFirstGradients(run);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, FirstGradients,
                         testing::Values("regression_mlp", "frozen_tied", "mnist_cnn", "mnist_mlp", "gpt_tiny"),
                         [](const auto& info) { return std::string(info.param); });

void ExpectSameBits(const RunResult& a, const RunResult& b) {
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t k = 0; k < a.steps.size(); ++k) EXPECT_EQ(a.steps[k].loss, b.steps[k].loss) << "step " << k;
  for (const auto& [name, tensor] : a.states) EXPECT_TRUE(tensor.Identical(b.states.at(name))) << name;
}

TEST(Overlap, OnAndOffGiveEqualBits) {
  for (const char* name : {"regression_mlp", "mnist_cnn"}) {
    const ReferenceRun run = LoadReferenceCase(name).front();
    for (int zero : {0, 1, 2}) {
      SCOPED_TRACE(run.name + ", ZeRO-" + std::to_string(zero));
      ExpectSameBits(TrainCase(run, {2, zero, 2, kOneByte, true}), TrainCase(run, {2, zero, 2, kOneByte, false}));
    }
  }
}

// The CNN's statistics are those of a micro-batch: other cuts than the recorded ones against the same slices in double.
TEST(BatchStatistics, OtherCutsAgreeWithDouble) {
  const ReferenceRun run = LoadReferenceCase("mnist_cnn").front();
  for (const Cut& cut : std::vector<Cut>{{4, 1, 1, {}}, {8, 2, 1, {}}, {2, 0, 4, {}}, {1, 0, 4, {}}}) {
    SCOPED_TRACE(cut.ToString());
    const RunResult single = TrainCase(run, cut);
    const RunResult twice = TrainCase(run, cut, DType::kDouble);
    ASSERT_EQ(single.steps.size(), twice.steps.size());
    for (size_t k = 0; k < single.steps.size(); ++k) {
      EXPECT_NEAR(single.steps[k].loss, twice.steps[k].loss, 2e-5) << "step " << k;
    }
  }
}

}  // namespace
}  // namespace onnxtrain
