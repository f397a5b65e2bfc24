// SPDX-License-Identifier: Apache-2.0
#include "tests/end_to_end/reference_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/cpu/cpu_device.h"
#include "runtime/data/npz.h"
#include "runtime/gradient_program.h"
#include "runtime/node_runner.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

using nlohmann::json;

// A data file beside the case, plain or compressed.
std::string DataFile(const std::string& folder, const std::string& file) {
  const std::filesystem::path path = std::filesystem::path(folder) / file;
  for (const std::string& candidate :
       {path.lexically_normal().string(),
        std::string(ONNXTRAIN_TEST_DATA_DIR) + "/mnist10k/" + path.filename().string() + ".gz"}) {
    if (std::filesystem::exists(candidate)) return candidate;
  }
  return path.string();
}

Tolerances ReadTolerances(const json& from) {
  Tolerances tolerances;
  tolerances.loss_abs = from.at("loss_abs");
  tolerances.grad_rel = from.at("grad_rel");
  tolerances.param_abs = from.at("param_abs");
  tolerances.param_rms = from.at("param_rms");
  tolerances.buffer_abs = from.value("buffer_abs", 0.0);
  tolerances.grad_norm_abs = from.value("grad_norm_abs", 0.0);
  return tolerances;
}

void ReadData(const json& config, const std::string& folder, RunOptions& run) {
  for (const auto& [name, input] : config.at("inputs").items()) {
    const std::string file = DataFile(folder, input.at("file"));
    if (file.size() > 4 && file.substr(file.size() - 4) == ".bin") {
      run.tokens = {file};
      run.seq_len = 64;
      continue;
    }
    run.train.push_back(name + "=" + file + (input.contains("map") ? ":" + input["map"].get<std::string>() : ""));
  }
  run.no_shuffle = true;
}

void ReadOptimizer(const json& config, TrainingOptions& training) {
  const json& optimizer = config.at("optimizer");
  std::string name = optimizer.at("name");
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  training.optimizer = name;
  training.lr = optimizer.at("lr").get<double>();
  if (optimizer.contains("weight_decay")) training.weight_decay = optimizer["weight_decay"].get<double>();
  if (name == "sgd") {
    training.momentum = optimizer.value("momentum", 0.0);
    training.nesterov = optimizer.value("nesterov", false);
  } else {
    training.beta1 = optimizer.at("betas")[0].get<double>();
    training.beta2 = optimizer.at("betas")[1].get<double>();
    training.eps = optimizer.at("eps").get<double>();
  }
  if (optimizer.contains("decay_only")) training.no_decay = {"rank<2"};
  if (config.contains("clip_grad_norm")) training.clip_grad = config["clip_grad_norm"].at("max_norm");
}

void ReadLoss(const json& config, TrainingOptions& training) {
  const std::string loss = config.at("loss");
  const size_t colon = loss.find(':');
  training.loss_on = loss.substr(colon + 1);
  if (loss.substr(0, colon) == "ce") {
    training.loss = "ce";
    training.labels = config.at("labels");
  }
  if (config.contains("freeze")) training.freeze = config["freeze"].get<std::vector<std::string>>();
}

ReferenceRun MakeRun(const json& config, const std::string& folder, const std::string& variant) {
  ReferenceRun made;
  made.model = folder + "/" + variant;
  ReadData(config, folder, made.run);
  ReadOptimizer(config, made.run.training);
  ReadLoss(config, made.run.training);
  made.run.model = {made.model};
  made.global_batch = config.at("global_batch");
  made.steps = config.at("steps");
  made.reference_ranks = config.value("ranks", json(0)).is_number() ? config.value("ranks", 0) : 0;
  made.batch_statistics = config.contains("batch_norm");
  made.tolerances = ReadTolerances(config.at("tolerances"));
  if (config.contains("no_gradient")) {
    for (const auto& [name, why] : config["no_gradient"].items()) made.no_gradient.push_back(name);
  }
  if (config.contains("renamed") && config["renamed"].contains(variant)) {
    made.renamed = config["renamed"][variant].get<std::map<std::string, std::string>>();
  }
  return made;
}

Status PrepareData(const ReferenceRun& reference, RunOptions& run, RunData& data) {
  ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Load(reference.model));
  ASSIGN_OR_RETURN(data, OpenRunData(model, run));
  return OkStatus();
}

std::string NameIn(const ReferenceRun& reference, const std::string& name) {
  const auto renamed = reference.renamed.find(name);
  return renamed == reference.renamed.end() ? name : renamed->second;
}

double LargestDifference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (int64_t i = 0; i < a.elements(); ++i) largest = std::max(largest, std::abs(a.DoubleAt(i) - b.DoubleAt(i)));
  return largest;
}

double RootMeanSquare(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i) sum += std::pow(a.DoubleAt(i) - b.DoubleAt(i), 2);
  return std::sqrt(sum / static_cast<double>(std::max<int64_t>(a.elements(), 1)));
}

double LargestElement(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) largest = std::max(largest, std::abs(tensor.DoubleAt(i)));
  return largest;
}

const Tensor* FindState(const RunResult& result, const std::string& name) {
  for (const char* role : {"parameter/", "frozen/", "buffer/"}) {
    const auto found = result.states.find(role + name);
    if (found != result.states.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace

std::string CaseFolder(const std::string& name) {
  for (const std::string& root :
       {std::string(ONNXTRAIN_TEST_DATA_DIR) + "/models/", std::string(ONNXTRAIN_SOURCE_DIR) + "/../shared/models/"}) {
    if (std::filesystem::exists(root + name + "/case.json")) return root + name;
  }
  return "";
}

std::vector<ReferenceRun> LoadReferenceCase(const std::string& name) {
  const std::string folder = CaseFolder(name);
  std::vector<ReferenceRun> runs;
  if (folder.empty()) return runs;
  std::ifstream stream(folder + "/case.json");
  const json config = json::parse(stream);
  for (const auto& [variant, what] : config.at("variants").items()) {
    for (const auto& [file, settings] : config.at("references").items()) {
      json overlaid = config;
      overlaid.erase("ranks");
      overlaid.update(settings);
      ReferenceRun run = MakeRun(overlaid, folder, variant);
      run.name = name + "/" + variant + "/" + file;
      StatusOr<std::vector<NamedTensor>> npz = ReadNpz(folder + "/" + file);
      EXPECT_TRUE(npz.ok()) << npz.status().message();
      for (auto& [entry, tensor] : *npz) run.reference[entry] = std::move(tensor);
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

std::string Cut::ToString() const {
  return std::to_string(ranks) + " ranks, ZeRO-" + std::to_string(zero) + ", " + std::to_string(accumulation) +
         " micro-batches, bucket " + (bucket_mb ? std::to_string(*bucket_mb) : "planned") +
         (overlap ? "" : ", no overlap") + (reduce_dtype == DType::kFloat ? "" : ", reduced in 16 bits");
}

RunResult TrainCase(const ReferenceRun& reference, const Cut& cut, DType dtype) {
  return TrainCase(reference, cut, dtype, [](TrainingSession&, const StepResult&) {});
}

RunResult TrainCase(const ReferenceRun& reference, const Cut& cut, DType dtype,
                    const std::function<void(TrainingSession&, const StepResult&)>& after) {
  RunResult result;
  RunOptions run = reference.run;
  TrainingOptions& training = run.training;
  training.ranks = cut.ranks;
  training.zero = cut.zero;
  training.accumulation = cut.accumulation;
  training.bucket_mb = cut.bucket_mb;
  training.overlap = cut.overlap;
  training.device = cut.device;
  training.cuda_graphs = cut.cuda_graphs;
  training.dtype = dtype;
  training.reduce_dtype = cut.reduce_dtype;
  training.threads = 2;
  training.batch_size = reference.global_batch / cut.ranks / cut.accumulation;
  training.max_steps = reference.steps;
  RunData data;
  const Status prepared = PrepareData(reference, run, data);
  EXPECT_TRUE(IsOk(prepared));
  if (!prepared.ok()) return result;
  StatusOr<std::unique_ptr<TrainingSession>> session = TrainingSession::Create(reference.model, training);
  EXPECT_TRUE(IsOk(session.status()));
  if (!session.ok()) return result;
  SamplerOptions sampler;
  sampler.samples = data.train->samples();
  sampler.global_batch = reference.global_batch;
  sampler.shuffle = false;
  StatusOr<std::unique_ptr<BatchFeeds>> batches = BatchFeeds::Create(*data.train, sampler, {}, reference.steps);
  EXPECT_TRUE(IsOk(batches.status()));
  if (!batches.ok()) return result;
  for (int64_t step = 0; step < reference.steps; ++step) {
    EXPECT_TRUE(IsOk((*batches)->Next()));
    const StatusOr<StepResult> stepped = (*session)->Step((*batches)->feeds(), (*batches)->samples());
    EXPECT_TRUE(IsOk(stepped.status()));
    if (!stepped.ok()) return result;
    result.steps.push_back(*stepped);
    after(**session, *stepped);
  }
  for (const std::string& name : (*session)->StateNames()) result.states[name] = *(*session)->ReadState(name);
  return result;
}

void ExpectReference(const ReferenceRun& reference, const RunResult& result) {
  ASSERT_EQ(static_cast<int64_t>(result.steps.size()), reference.steps);
  const Tolerances& tolerances = reference.tolerances;
  const Tensor& loss = reference.reference.at("loss");
  const auto norm = reference.reference.find("grad_norm");
  for (size_t k = 0; k < result.steps.size(); ++k) {
    EXPECT_NEAR(result.steps[k].loss, loss.DoubleAt(static_cast<int64_t>(k)), tolerances.loss_abs) << "step " << k;
    if (norm == reference.reference.end()) continue;
    EXPECT_NEAR(result.steps[k].grad_norm, norm->second.DoubleAt(static_cast<int64_t>(k)), tolerances.grad_norm_abs)
        << "step " << k;
  }
  for (const auto& [entry, expected] : reference.reference) {
    const bool parameter = entry.rfind("param/", 0) == 0;
    if (!parameter && entry.rfind("buffer/", 0) != 0) continue;
    const std::string name = NameIn(reference, entry.substr(entry.find('/') + 1));
    const Tensor* found = FindState(result, name);
    if (found == nullptr) {  // a tensor that does not train need not be state at all
      EXPECT_NE(std::find(reference.no_gradient.begin(), reference.no_gradient.end(), name),
                reference.no_gradient.end())
          << entry;
      continue;
    }
    if (parameter) {
      EXPECT_LE(LargestDifference(*found, expected), tolerances.param_abs) << entry;
      EXPECT_LE(RootMeanSquare(*found, expected), tolerances.param_rms) << entry;
    } else {
      EXPECT_LE(LargestDifference(*found, expected), tolerances.buffer_abs) << entry;
    }
  }
}

void ExpectFirstGradients(const ReferenceRun& reference) {
  RunOptions run = reference.run;
  run.training.batch_size = reference.global_batch;
  RunData data;
  ASSERT_TRUE(IsOk(PrepareData(reference, run, data)));
  StatusOr<OnnxModel> model = OnnxModel::Load(reference.model);
  ASSERT_TRUE(IsOk(model.status()));
  StatusOr<GradientProgram> made = BuildGradientProgram(*model, run.training, {});
  ASSERT_TRUE(IsOk(made.status()));
  SamplerOptions sampler;
  sampler.samples = data.train->samples();
  sampler.global_batch = reference.global_batch;
  sampler.shuffle = false;
  std::unique_ptr<BatchFeeds> batches = *BatchFeeds::Create(*data.train, sampler, {}, 1);
  ASSERT_TRUE(IsOk(batches->Next()));
  const CpuDevice device;
  const Graph& graph = *made->program.FindGraph("step");
  StatusOr<std::unique_ptr<NodeRunner>> runner = NodeRunner::Create(graph, device.kernels(), {});
  ASSERT_TRUE(IsOk(runner.status()));
  for (const auto& [name, tensor] : batches->Rows(0, reference.global_batch)) {
    if (graph.FindValue(name) == nullptr) continue;
    ASSERT_TRUE(IsOk((*runner)->Set(name, tensor)));
  }
  for (const Value* state : graph.states()) {
    ASSERT_TRUE(IsOk((*runner)->Set(state->name(),
                                    made->program.initial.at(CanonicalName(*made->program.FindState(state->name()))))));
  }
  ASSERT_TRUE(IsOk((*runner)->Run()));
  for (const auto& [entry, expected] : reference.reference) {
    if (entry.rfind("grad/", 0) != 0) continue;
    const Value* gradient = graph.FindRole("gradient/" + NameIn(reference, entry.substr(5)));
    ASSERT_NE(gradient, nullptr) << entry;
    EXPECT_LE(LargestDifference((*runner)->value(gradient), expected),
              reference.tolerances.grad_rel * LargestElement(expected))
        << entry;
  }
}

}  // namespace onnxtrain
