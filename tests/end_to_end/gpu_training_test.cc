// SPDX-License-Identifier: Apache-2.0
// Reference models trained with --device cuda: the unmodified backend on GPUs, or on the simulated libraries.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "runtime/file_system.h"
#include "runtime/local_session.h"
#include "tests/end_to_end/reference_case.h"
#include "tests/support/backends.h"
#include "tests/support/op_runner.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr double kOneByte = 1.0 / 1048576;

class OnGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = WhyNot("cuda"); !reason.empty()) GTEST_SKIP() << reason;
  }

  static Cut OnCuda(Cut cut, bool graphs = false) {
    cut.device = "cuda";
    cut.cuda_graphs = graphs;
    return cut;
  }

  // Of every variant whose batch divides.
  static void ExpectCuts(const std::string& name, const std::vector<Cut>& cuts) {
    const std::vector<ReferenceRun> runs = LoadReferenceCase(name);
    if (runs.empty()) GTEST_SKIP() << "reference model " << name << " is not here";
    int trained = 0;
    for (const ReferenceRun& run : runs) {
      for (const Cut& cut : cuts) {
        const bool applies = run.batch_statistics ? cut.ranks == run.reference_ranks && cut.accumulation == 1
                                                  : run.global_batch % (cut.ranks * cut.accumulation) == 0;
        if (!applies) continue;
        SCOPED_TRACE(run.name + ": " + cut.ToString());
        ExpectReference(run, TrainCase(run, cut));
        ++trained;
      }
    }
    EXPECT_GT(trained, 0);
  }
};

// A counter of a simulated library; -1 on a GPU.
int64_t CounterOf(const char* library, const char* function, const char* name) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return -1;
  using Read = int64_t (*)(const char*);
  const auto read = reinterpret_cast<Read>(dlsym(handle, function));
  return read == nullptr ? -1 : read(name);
}
int64_t Counter(const char* name) { return CounterOf("libcudart.so.13", "simulated_cuda_counter", name); }
int64_t MatmulCounter(const char* name) { return CounterOf("libcublasLt.so.13", "simulated_cublaslt_counter", name); }

TEST_F(OnGpus, RegressionMlp) {
  ExpectCuts("regression_mlp", {OnCuda({1, 0, 1, {}}), OnCuda({3, 2, 4, {}}), OnCuda({4, 1, 1, kOneByte}, true)});
}
TEST_F(OnGpus, FrozenTied) { ExpectCuts("frozen_tied", {OnCuda({1, 0, 1, {}}), OnCuda({3, 1, 1, kOneByte})}); }
TEST_F(OnGpus, MnistCnn) { ExpectCuts("mnist_cnn", {OnCuda({1, 0, 1, {}}), OnCuda({2, 1, 1, {}}, true)}); }

TEST_F(OnGpus, SlowMnistMlp) { ExpectCuts("mnist_mlp", {OnCuda({1, 0, 1, {}}), OnCuda({4, 2, 1, {}}, true)}); }
TEST_F(OnGpus, SlowGptTiny) {
  ExpectCuts("gpt_tiny", {OnCuda({4, 0, 1, {}}), OnCuda({4, 1, 1, {}}), OnCuda({4, 2, 1, {}}, true)});
}

// Products and activations in bfloat16, gathers and reductions too: near the float losses of the reference, and the bits
// of the eager run where the step is a graph.
void ExpectHalfNearFloat(const std::string& name, const std::vector<Cut>& cuts, double tolerance) {
  const std::vector<ReferenceRun> runs = LoadReferenceCase(name);
  if (runs.empty()) GTEST_SKIP() << "reference model " << name << " is not here";
  const ReferenceRun& run = runs.front();
  const Tensor& losses = run.reference.at("loss");
  for (Cut cut : cuts) {
    SCOPED_TRACE(cut.ToString());
    cut.device = "cuda";
    cut.reduce_dtype = DType::kBfloat16;
    const RunResult result = TrainCase(run, cut, DType::kBfloat16);
    ASSERT_EQ(static_cast<int64_t>(result.steps.size()), run.steps);
    for (size_t k = 0; k < result.steps.size(); ++k) {
      const double expected = losses.DoubleAt(static_cast<int64_t>(k));
      EXPECT_NEAR(result.steps[k].loss, expected, tolerance * std::max(1.0, expected)) << "step " << k;
    }
  }
}

TEST_F(OnGpus, HalfPrecisionStaysNearItsFloatLosses) {
  ExpectHalfNearFloat("regression_mlp", {{1, 0, 1, {}}, {2, 2, 2, kOneByte}}, 5e-2);
}
TEST_F(OnGpus, SlowGptInHalfPrecision) { ExpectHalfNearFloat("gpt_tiny", {{1, 0, 1, {}}, {2, 2, 2, {}}}, 1e-2); }

void ExpectSameBits(const RunResult& a, const RunResult& b) {
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t k = 0; k < a.steps.size(); ++k) EXPECT_EQ(a.steps[k].loss, b.steps[k].loss) << "step " << k;
  for (const auto& [name, tensor] : a.states) EXPECT_TRUE(tensor.Identical(b.states.at(name))) << name;
}

TEST_F(OnGpus, GraphsGiveTheEagerBits) {
  const ReferenceRun run = LoadReferenceCase("regression_mlp").front();
  for (const Cut& cut : std::vector<Cut>{{1, 0, 1, {}}, {2, 1, 2, kOneByte}, {4, 2, 1, {}}}) {
    SCOPED_TRACE(cut.ToString());
    ExpectSameBits(TrainCase(run, OnCuda(cut)), TrainCase(run, OnCuda(cut, true)));
  }
}

// Submission only enqueues: in a step the host waits where it fetches and nowhere else, and allocates nothing.
TEST_F(OnGpus, AStepStopsTheHostOnlyWhereItFetches) {
  if (Counter("calls") < 0) GTEST_SKIP() << "only the simulated CUDA runtime counts";
  constexpr int kRanks = 4;
  // Two streams of a rank and the fetches of its two slots.
  constexpr int64_t kWaits = kRanks * (2 + Executor::kDepth);
  const ReferenceRun run = LoadReferenceCase("regression_mlp").front();
  for (const bool graphs : {false, true}) {
    std::map<std::string, int64_t> before;
    int64_t steps = 0;
    const char* const names[] = {"host_waits", "pageable_copies", "allocations", "kernel_launches", "graph_launches"};
    TrainCase(run, OnCuda({kRanks, 1, 1, kOneByte}, graphs), DType::kFloat, [&](TrainingSession&, const StepResult&) {
      std::map<std::string, int64_t> now;
      for (const char* name : names) now[name] = Counter(name);
      // The first steps warm up and record.
      if (++steps > Executor::kDepth + 2) {
        // A slot that is waited for again before it is used again: once more a rank.
        EXPECT_LE(now["host_waits"] - before["host_waits"], kWaits + kRanks);
        EXPECT_EQ(now["pageable_copies"], before["pageable_copies"]);
        EXPECT_EQ(now["allocations"], before["allocations"]);
        EXPECT_EQ(now["graph_launches"] - before["graph_launches"], graphs ? kRanks : 0);
        if (graphs) {
          EXPECT_EQ(now["kernel_launches"], before["kernel_launches"]);
        }
        RecordProperty(graphs ? "graph_launches_a_step" : "kernel_launches_a_step",
                       std::to_string(now["kernel_launches"] - before["kernel_launches"] + now["graph_launches"] -
                                      before["graph_launches"]));
      }
      before = now;
    });
    EXPECT_GT(steps, Executor::kDepth + 2);
  }
}

TEST_F(OnGpus, AlgorithmsAreKeptFromRunToRun) {
  const TemporaryFolder folder;
  ReferenceRun run = LoadReferenceCase("regression_mlp").front();
  run.run.training.cache_folder = folder.Path("cache");
  const Cut cut = OnCuda({2, 1, 1, {}});
  const RunResult first = TrainCase(run, cut);
  const std::vector<std::string> files = PosixFileSystem().List(folder.Path("cache")).value();
  ASSERT_EQ(files.size(), 1u);
  const int64_t asked = MatmulCounter("heuristics");
  ExpectSameBits(first, TrainCase(run, cut));
  EXPECT_EQ(MatmulCounter("heuristics"), asked);

  (void)folder.Write("cache/" + files[0], ReadText(folder.Path("cache/" + files[0])) + "more");
  std::vector<std::string> notes;
  ExpectSameBits(first, TrainCase(run, cut, DType::kFloat,
                                  [&](TrainingSession& session, const StepResult&) { notes = session.notes(); }));
  EXPECT_THAT(notes, Contains(HasSubstr(files[0] + " is not used: it was cut or changed")));
}

// A product of elements has kernels on the CPU alone: with --fallback cpu its node runs there, eager and recorded, and
// without it the model is refused with the way out.
TEST_F(OnGpus, WhatHasNoKernelRunsOnTheHostWhereThatIsAsked) {
  const TemporaryFolder folder;
  const std::string model = folder.Write("model.onnxtxt", R"(< ir_version: 10, opset_import: ["" : 24] >
step (float[8,4] x) => (float[8,1] y)
<float[4,3] w = {0.5, -1.0, 0.25, 1.5, 0.75, -0.5, 1.25, 0.3, -0.2, 0.9, 0.4, 0.6}, int64[1] axes = {1}>
{
  h = MatMul (x, w)
  y = ReduceProd <keepdims = 1> (h, axes)
}
)");
  TrainingOptions options;
  options.loss = "mse";
  options.labels = "labels";
  options.optimizer = "sgd";
  options.lr = 0.01;
  options.batch_size = 4;
  options.ranks = 2;
  options.zero = 1;
  const Tensor x = RandomTensor(DType::kFloat, {16, 4}, 1), labels = RandomTensor(DType::kFloat, {16, 1}, 2);
  const auto losses = [&](const TrainingOptions& chosen) {
    std::vector<double> all;
    const auto session = TrainingSession::Create(model, chosen);
    EXPECT_TRUE(IsOk(session.status()));
    for (int step = 0; session.ok() && step < 6; ++step) {
      const auto result = (*session)->Step({{"x", x.data()}, {"labels", labels.data()}}, 8);
      EXPECT_TRUE(IsOk(result.status()));
      all.push_back(result.ok() ? result->loss : -1);
    }
    return all;
  };
  const std::vector<double> expected = losses(options);
  options.device = "cuda";
  EXPECT_THAT(TrainingSession::Create(model, options).status().message(),
              HasSubstr("--fallback cpu runs them on the host"));
  options.fallback_to_cpu = true;
  for (const bool graphs : {false, true}) {
    options.cuda_graphs = graphs;
    const std::vector<double> found = losses(options);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t k = 0; k < found.size(); ++k) EXPECT_NEAR(found[k], expected[k], 1e-5) << "step " << k;
  }
}

// The engines of the CNN's convolutions are chosen in the first run and read in the second.
TEST_F(OnGpus, ConvolutionPlansAreKeptFromRunToRun) {
  const auto plans = [](const char* name) { return CounterOf("libcudnn.so.9", "simulated_cudnn_counter", name); };
  if (plans("plans") < 0) GTEST_SKIP() << "only the simulated cuDNN counts";
  const TemporaryFolder folder;
  ReferenceRun run = LoadReferenceCase("mnist_cnn").front();
  run.run.training.cache_folder = folder.Path("cache");
  const Cut cut = OnCuda({std::max(1, run.reference_ranks), 0, 1, {}});
  const RunResult first = TrainCase(run, cut);
  const int64_t chosen = plans("plans"), read = plans("plans_from_json");
  EXPECT_GT(chosen, 0);
  ExpectSameBits(first, TrainCase(run, cut));
  EXPECT_EQ(plans("plans"), chosen);
  EXPECT_GT(plans("plans_from_json"), read);
}

TEST_F(OnGpus, Tf32IsAChoiceAndStaysClose) {
  ReferenceRun run = LoadReferenceCase("regression_mlp").front();
  const RunResult full = TrainCase(run, OnCuda({1, 0, 1, {}}));
  run.run.training.tf32 = true;
  const RunResult rounded = TrainCase(run, OnCuda({1, 0, 1, {}}));
  ASSERT_EQ(full.steps.size(), rounded.steps.size());
  bool differs = false;
  for (size_t k = 0; k < full.steps.size(); ++k) {
    EXPECT_NEAR(rounded.steps[k].loss, full.steps[k].loss, 1e-2 * std::abs(full.steps[k].loss)) << "step " << k;
    differs = differs || rounded.steps[k].loss != full.steps[k].loss;
  }
  // A GPU may have no TF32 code for such small products.
  EXPECT_TRUE(differs || MatmulCounter("products") < 0);
}

// Whether the first reduce-scatter of rank 0 begins while its compute stream still has products of backward to do.
bool Overlaps(std::span<const TraceEvent> step) {
  double last_product = 0;
  double first_reduction = std::numeric_limits<double>::infinity();
  for (const TraceEvent& event : step) {
    if (event.rank != 0) continue;
    if (event.category == "onnxtrain.ReduceScatter") {
      EXPECT_EQ(event.stream, 1);
      first_reduction = std::min(first_reduction, event.start_us);
    } else if (event.stream == 0 && (event.category == "Gemm" || event.category == "MatMul")) {
      last_product = std::max(last_product, event.start_us + event.duration_us);
    }
  }
  EXPECT_LT(first_reduction, std::numeric_limits<double>::infinity());
  return first_reduction < last_product;
}

// That it may is the plan's affair and proved there; that it does depends on what else the machine has to do, so one
// step of the run is enough.
TEST_F(OnGpus, ReduceScattersRunBesideBackward) {
  const ReferenceRun run = LoadReferenceCase("regression_mlp").front();
  size_t seen = 0;
  int overlapping = 0;
  TrainCase(run, OnCuda({2, 1, 1, kOneByte}), DType::kFloat, [&](TrainingSession& session, const StepResult&) {
    auto& local = static_cast<LocalSession&>(session);
    const std::span<const TraceEvent> step = std::span(local.trace()).subspan(seen);
    if (!step.empty()) overlapping += Overlaps(step) ? 1 : 0;
    seen = local.trace().size();
    local.set_tracing(true);
  });
  EXPECT_GT(seen, 0u);
  EXPECT_GT(overlapping, 0);
}

}  // namespace
}  // namespace onnxtrain
