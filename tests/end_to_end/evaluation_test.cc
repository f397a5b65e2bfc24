// SPDX-License-Identifier: Apache-2.0
// What a session evaluates is the model it would save, however many ranks trained it.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/training_session.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

constexpr int64_t kBatch = 12;
const char kModel[] = ONNXTRAIN_SOURCE_DIR "/examples/mnist_cnn/model.onnx";

struct Batch {
  explicit Batch(uint32_t seed) {
    std::mt19937 random(seed);
    for (float& pixel : images) pixel = static_cast<float>(random() % 256) / 255.0f;
    for (int64_t& label : labels) label = random() % 10;
  }
  Feeds feeds() const { return {{"x", images.data()}, {"labels", labels.data()}}; }
  std::vector<float> images = std::vector<float>(kBatch * 784);
  std::vector<int64_t> labels = std::vector<int64_t>(kBatch);
};

std::unique_ptr<TrainingSession> Session(int ranks, int zero) {
  TrainingOptions options;
  options.ranks = ranks;
  options.zero = zero;
  options.batch_size = kBatch / ranks;
  options.threads = ranks;
  options.feeds["x"] = {DType::kFloat, {1, 28, 28}, /*per_sample=*/true};
  options.feeds["labels"] = {DType::kInt64, {}, /*per_sample=*/true};
  auto session = TrainingSession::Create(kModel, options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.ok() ? std::move(session).value() : nullptr;
}

// BatchNormalization's running statistics differ between ranks while they train; evaluation uses those of rank 0 on
// every rank.
TEST(Evaluation, EqualsThatOfOneRankWithTheSameTensors) {
  for (const int ranks : {1, 2, 3}) {
    for (const int zero : {0, 1}) {
      SCOPED_TRACE("ranks " + std::to_string(ranks) + " zero " + std::to_string(zero));
      const auto trained = Session(ranks, zero);
      const auto single = Session(1, 0);
      ASSERT_TRUE(trained && single);
      for (uint32_t step = 0; step < 3; ++step) {
        const Batch batch(step);
        ASSERT_TRUE(trained->Step(batch.feeds(), kBatch).ok());
      }
      for (const TensorInfo& tensor : trained->tensors()) {
        if (tensor.verdict != "trainable" && tensor.verdict != "buffer") continue;
        const auto value = trained->ReadTensor(tensor.name);
        ASSERT_TRUE(value.ok()) << value.status().message();
        const Status written = single->WriteTensor(tensor.name, *value);
        ASSERT_TRUE(written.ok()) << written.message();
      }
      const Batch unseen(99);
      const auto expected = single->Evaluate(unseen.feeds(), kBatch);
      const auto found = trained->Evaluate(unseen.feeds(), kBatch);
      ASSERT_TRUE(expected.ok() && found.ok());
      EXPECT_NEAR(found->loss_sum, expected->loss_sum, 1e-5 * expected->loss_sum);
      EXPECT_EQ(found->correct, expected->correct);
      EXPECT_EQ(found->samples, kBatch);
    }
  }
}

}  // namespace
}  // namespace onnxtrain
