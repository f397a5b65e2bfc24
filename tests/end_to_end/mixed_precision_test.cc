// SPDX-License-Identifier: Apache-2.0
// Reference models trained with products and activations in bfloat16: the losses stay near those of PyTorch's float
// run, however the step is cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/end_to_end/reference_case.h"

namespace onnxtrain {
namespace {

std::vector<float> ReferenceLosses(const ReferenceRun& run) {
  const Tensor losses = run.reference.at("loss").CastTo(DType::kFloat);
  const auto values = losses.values<float>();
  return {values.begin(), values.end()};
}

// The largest distance of any step's loss, relative to the float loss where that is above one.
double LargestDistance(const ReferenceRun& run, const RunResult& result) {
  const std::vector<float> losses = ReferenceLosses(run);
  EXPECT_EQ(losses.size(), result.steps.size());
  double largest = 0;
  for (size_t k = 0; k < std::min(losses.size(), result.steps.size()); ++k) {
    EXPECT_TRUE(std::isfinite(result.steps[k].loss)) << "step " << k;
    largest = std::max(largest, std::abs(result.steps[k].loss - losses[k]) / std::max(1.0f, losses[k]));
  }
  return largest;
}

Cut InHalf(Cut cut, DType reduce) {
  cut.reduce_dtype = reduce;
  return cut;
}

void ExpectNearFloat(const std::string& name, const std::vector<Cut>& cuts, double tolerance) {
  const std::vector<ReferenceRun> runs = LoadReferenceCase(name);
  if (runs.empty()) GTEST_SKIP() << "reference model " << name << " is not here";
  for (const ReferenceRun& run : runs) {
    for (const Cut& cut : cuts) {
      if (run.batch_statistics && (cut.ranks != run.reference_ranks || cut.accumulation != 1)) continue;
      SCOPED_TRACE(run.name + ": " + cut.ToString());
      const double distance = LargestDistance(run, TrainCase(run, cut, DType::kBfloat16));
      EXPECT_LE(distance, tolerance);
      EXPECT_GT(distance, 1e-6) << "nothing was rounded to 16 bits";
    }
  }
}

TEST(MixedPrecision, GptStaysNearItsFloatLosses) {
  ExpectNearFloat("gpt_tiny", {{1, 0, 1, {}}, InHalf({2, 2, 2, {}}, DType::kBfloat16)}, 1e-2);
}

TEST(MixedPrecision, SlowGptCutEveryWay) {
  std::vector<Cut> cuts;
  for (int ranks : {1, 2, 4}) {
    for (int zero : {0, 1, 2}) {
      for (DType reduce : {DType::kFloat, DType::kBfloat16}) {
        cuts.push_back(InHalf({ranks, zero, 1, {}}, reduce));
        cuts.push_back(InHalf({ranks, zero, 2, 1.0 / 1048576}, reduce));
      }
    }
  }
  ExpectNearFloat("gpt_tiny", cuts, 1e-2);
}

TEST(MixedPrecision, CnnStaysNearItsFloatLosses) {
  ExpectNearFloat("mnist_cnn", {{1, 0, 1, {}}, InHalf({2, 1, 1, {}}, DType::kBfloat16)}, 3e-2);
}

// Casts and gathers in 16 bits are where they were: ZeRO stages change no bit of what a rank computes.
TEST(MixedPrecision, ShardedStateGivesTheSameLosses) {
  const std::vector<ReferenceRun> runs = LoadReferenceCase("regression_mlp");
  if (runs.empty()) GTEST_SKIP() << "reference model regression_mlp is not here";
  const RunResult whole = TrainCase(runs.front(), {2, 0, 1, {}}, DType::kBfloat16);
  const RunResult sharded = TrainCase(runs.front(), {2, 1, 1, {}}, DType::kBfloat16);
  ASSERT_EQ(whole.steps.size(), sharded.steps.size());
  for (size_t k = 0; k < whole.steps.size(); ++k) {
    EXPECT_NEAR(whole.steps[k].loss, sharded.steps[k].loss, 1e-6 * std::max(1.0, whole.steps[k].loss)) << "step " << k;
  }
}

}  // namespace
}  // namespace onnxtrain
