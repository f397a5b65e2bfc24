// SPDX-License-Identifier: Apache-2.0
// step_time MODEL [--ranks N] [--zero Z] [--threads T] [--steps N] [--warmup N] [--batch B] [--loss ce --labels NAME]
// [--classes C] [--dtype bf16] [--device cuda] [--cuda-graphs]
//
// Times training steps (forward, backward, AdamW) on one fixed random batch, and prints one JSON line: minimum and
// median milliseconds, the planned bytes of a rank, the process's peak resident memory, and how far that is above the
// plan, 5 % and the model's file: docs/plan.md says what it is made of. Sizes in 10^6 bytes.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "graph/onnx_model.h"
#include "runtime/forward_program.h"
#include "runtime/training_session.h"
#include "tools/environment.h"
#include "tools/option_set.h"
#include "tools/run_options.h"

namespace onnxtrain {
namespace {

struct BenchArguments {
  RunOptions run;
  int64_t steps = 20;
  int64_t warmup = 3;
  int64_t classes = 10;
};

// Normal numbers for float inputs, class numbers for integer ones.
Tensor RandomFeed(const TensorType& type, int64_t classes, std::mt19937_64& generator) {
  Tensor tensor(type);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (type.dtype == DType::kBool) {
      tensor.values<bool>()[static_cast<size_t>(i)] = generator() % 2 == 0;
    } else if (type.dtype == DType::kFloat) {
      tensor.values<float>()[static_cast<size_t>(i)] = normal(generator);
    } else {
      tensor.values<int64_t>()[static_cast<size_t>(i)] =
          static_cast<int64_t>(generator() % static_cast<uint64_t>(classes));
    }
  }
  return tensor;
}

using Types = std::map<std::string, TensorType>;

// Of the inputs and labels of a global batch. The model is gone afterwards: the session has its own.
StatusOr<Types> FeedTypes(BenchArguments& arguments) {
  TrainingOptions& training = arguments.run.training;
  ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Load(arguments.run.model[0]));
  const std::vector<ModelDim>& dims = *model.inputs()[0].dims;
  if (!arguments.run.batch_size && dims[0].value)
    training.batch_size = *dims[0].value / training.ranks / training.accumulation;
  ASSIGN_OR_RETURN(Types types, BoundInputs(model, training, training.global_batch()));
  if (!training.labels.empty() && types.count(training.labels) == 0) {
    types[training.labels] = {DType::kInt64, {training.global_batch()}};
    const auto& output = model.outputs()[0].dims;  // labels of every place that has scores
    for (size_t axis = 1; output && axis + 1 < output->size(); ++axis) {
      types[training.labels].shape.push_back((*output)[axis].value.value_or(1));
    }
  }
  return types;
}

Status Bench(BenchArguments& arguments) {
  TrainingOptions& training = arguments.run.training;
  ASSIGN_OR_RETURN(const Types types, FeedTypes(arguments));
  std::mt19937_64 generator(1);
  std::map<std::string, Tensor> tensors;
  Feeds feeds;
  for (const auto& [name, type] : types) {
    tensors[name] = RandomFeed(type, arguments.classes, generator);
    feeds[name] = tensors[name].data();
    const bool per_sample = type.shape[0] == training.global_batch();
    training.feeds[name] = {type.dtype, per_sample ? Shape(type.shape.begin() + 1, type.shape.end()) : type.shape,
                            per_sample};
  }
  ASSIGN_OR_RETURN(std::unique_ptr<TrainingSession> session, TrainingSession::Create(arguments.run.model[0], training));
  std::vector<double> times;
  StepResult last;
  for (int64_t step = 0; step < arguments.warmup + arguments.steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(last, session->Step(feeds, training.global_batch()));
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
    if (step >= arguments.warmup) times.push_back(spent.count());
  }
  std::sort(times.begin(), times.end());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  nlohmann::ordered_json json;
  json["min_ms"] = times.front();
  json["median_ms"] = times[times.size() / 2];
  json["loss"] = last.loss;
  json["samples_per_s"] = static_cast<double>(training.global_batch()) / times[times.size() / 2] * 1e3;
  const double planned_mb = static_cast<double>(session->planned_bytes()) * training.ranks / 1e6;
  const double peak_mb = static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
  const double file_mb = static_cast<double>(std::filesystem::file_size(arguments.run.model[0])) / 1e6;
  json["planned_mb"] = planned_mb;
  json["model_file_mb"] = file_mb;
  json["peak_rss_mb"] = peak_mb;
  json["beside_plan_mb"] = peak_mb - 1.05 * planned_mb - file_mb;
  std::puts(json.dump().c_str());
  return OkStatus();
}

Status Run(const std::vector<std::string>& raw) {
  BenchArguments arguments;
  OptionSet options;
  AddModelOptions(options, arguments.run);
  AddOptimizerOptions(options, arguments.run);
  AddBatchOptions(options, arguments.run);
  AddNumberOptions(options, arguments.run);
  options.Int("steps", &arguments.steps, "N", "timed steps", 1);
  options.Int("warmup", &arguments.warmup, "N", "steps before", 0);
  options.Int("classes", &arguments.classes, "C", "integer feeds are 0 .. C-1", 1);
  RETURN_IF_ERROR(options.Parse(raw));
  RETURN_IF_ERROR(CheckTogether(options, arguments.run));
  return Bench(arguments);
}

}  // namespace
}  // namespace onnxtrain

int main(int argc, char** argv) {
  const onnxtrain::Status status = onnxtrain::Run(std::vector<std::string>(argv + 1, argv + argc));
  if (!status.ok()) std::fprintf(stderr, "step_time: %s\n", status.message().c_str());
  return onnxtrain::ExitCode(status.code());
}
