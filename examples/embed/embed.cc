// SPDX-License-Identifier: Apache-2.0
// A program that embeds onnx-train, as a server would: it trains from buffers of its own, hands the weights to a second
// session in the same process, evaluates there, and exports the result for inference.
//
//   embed examples/mnist_cnn/model.onnx trained.onnx
//
// The data is made up: an image of class c is noise with a bright bar in row 2c+4.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/training_session.h"

namespace {

using onnxtrain::DType;
using onnxtrain::EvalResult;
using onnxtrain::Feeds;
using onnxtrain::Status;
using onnxtrain::StatusOr;
using onnxtrain::StepResult;
using onnxtrain::Tensor;
using onnxtrain::TensorInfo;
using onnxtrain::TrainingOptions;
using onnxtrain::TrainingSession;

constexpr int kSide = 28;
constexpr int kClasses = 10;
constexpr int kBatch = 32;
constexpr int kSteps = 30;

struct Batch {
  std::vector<float> images = std::vector<float>(kBatch * kSide * kSide);
  std::vector<int64_t> labels = std::vector<int64_t>(kBatch);
  Feeds feeds() const { return {{"x", images.data()}, {"labels", labels.data()}}; }
};

Batch MakeBatch(std::mt19937& random) {
  Batch batch;
  for (float& pixel : batch.images) pixel = static_cast<float>(random() % 256) / 512.0f;
  for (int i = 0; i < kBatch; ++i) {
    const int label = static_cast<int>(random() % kClasses);
    batch.labels[i] = label;
    float* row = batch.images.data() + (i * kSide + 2 * label + 4) * kSide;
    for (int column = 4; column < kSide - 4; ++column) row[column] = 1.0f;
  }
  return batch;
}

TrainingOptions Options(int ranks) {
  TrainingOptions options;
  options.lr = 2e-3;
  options.ranks = ranks;
  options.batch_size = kBatch / ranks;
  options.feeds["x"] = {DType::kFloat, {1, kSide, kSide}, /*per_sample=*/true};
  options.feeds["labels"] = {DType::kInt64, {}, /*per_sample=*/true};
  return options;
}

Status Train(TrainingSession& session) {
  std::mt19937 random(7);
  for (int i = 0; i < kSteps; ++i) {
    const Batch batch = MakeBatch(random);
    ASSIGN_OR_RETURN(const StepResult result, session.Step(batch.feeds(), kBatch));
    if (!result.applied) return session.ExplainNonFinite(batch.feeds(), kBatch);
    if (i % 10 == 0 || i + 1 == kSteps) std::printf("step %2d  loss %.4f\n", i, result.loss);
  }
  return onnxtrain::OkStatus();
}

// Gives `to` the weights and running statistics of `from`.
Status CopyWeights(TrainingSession& from, TrainingSession& to) {
  for (const TensorInfo& tensor : from.tensors()) {
    if (tensor.verdict != "trainable" && tensor.verdict != "buffer") continue;
    ASSIGN_OR_RETURN(const Tensor value, from.ReadTensor(tensor.name));
    RETURN_IF_ERROR(to.WriteTensor(tensor.name, value));
  }
  return onnxtrain::OkStatus();
}

// On batches that training has not seen.
StatusOr<EvalResult> Evaluate(const char* name, TrainingSession& session) {
  std::mt19937 random(8);
  EvalResult total;
  for (int i = 0; i < 4; ++i) {
    const Batch batch = MakeBatch(random);
    ASSIGN_OR_RETURN(const EvalResult result, session.Evaluate(batch.feeds(), kBatch));
    total.Add(result);
  }
  std::printf("%s  loss %.4f, %d of %d right\n", name, total.loss_sum / total.weight, static_cast<int>(total.correct),
              static_cast<int>(total.counted));
  return total;
}

Status Run(const std::string& model, const std::string& exported) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TrainingSession> trainer,
                   TrainingSession::Create(model, Options(/*ranks=*/2)));
  ASSIGN_OR_RETURN(const std::unique_ptr<TrainingSession> server, TrainingSession::Create(model, Options(/*ranks=*/1)));
  RETURN_IF_ERROR(Train(*trainer));
  RETURN_IF_ERROR(CopyWeights(*trainer, *server));

  ASSIGN_OR_RETURN(const EvalResult trained, Evaluate("trainer", *trainer));
  ASSIGN_OR_RETURN(const EvalResult served, Evaluate("server ", *server));
  if (served.correct != trained.correct || served.correct * 10 < served.counted * 9) {
    return onnxtrain::InternalError("the server should be as good as the trainer, and right in 9 of 10");
  }
  return server->ExportInference(exported);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: embed MODEL.onnx EXPORTED.onnx\n");
    return 2;
  }
  const Status status = Run(argv[1], argv[2]);
  if (!status.ok()) {
    std::fprintf(stderr, "embed: %s\n", status.message().c_str());
    return 1;
  }
  std::printf("exported %s\n", argv[2]);
  return 0;
}
