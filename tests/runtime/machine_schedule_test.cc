// SPDX-License-Identifier: Apache-2.0
// Level L6: what a step of GPT-2 124M and of ResNet-50 takes on 1 to 8 H200, in virtual time. The goldens
// tests/golden/schedule/*.txt show where the time goes and how far it is from the least that the arithmetic and the
// bytes of the network allow; a pass or a schedule that makes a step longer or larger changes them. They are
// predictions of graph/cost_model.h and no measurements. UPDATE_GOLDEN=1 writes them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "graph/op_registry.h"
#include "graph/program_text.h"
#include "passes/standard_pipeline.h"
#include "passes/step_structure.h"
#include "runtime/persistent_placements.h"
#include "runtime/plan_json.h"
#include "runtime/plan_verifier.h"
#include "runtime/scheduler.h"
#include "tests/support/network_floors.h"
#include "tests/support/reference_networks.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

struct Network {
  std::string name;
  std::string text;
  std::string labels;
  TensorType labels_type;
  int64_t parameters = 0;
  int64_t batch = 0;
  std::vector<FloorTerm> (*floor)(int64_t batch, int shards) = nullptr;
};

Network Gpt2() {
  return {"gpt2_124m", Gpt2Text(16), "targets", {DType::kInt64, {16, 1024}}, 124475904, 16, &Gpt2Floor};
}
Network ResNet50() {
  return {"resnet50", ResNet50Text(64), "labels", {DType::kInt64, {64}}, 25557032, 64, &ResNet50Floor};
}

struct Setting {
  int ranks = 1;
  int zero = 0;
  DType dtype = DType::kBfloat16;
  bool tf32 = false;
};

std::string PrecisionOf(const Setting& setting) {
  if (setting.dtype != DType::kFloat) return "bf16";
  return setting.tf32 ? "tf32" : "f32";
}

PipelineOptions PipelineOf(const Network& network, const Setting& setting, const CostModel& machine) {
  PipelineOptions options;
  options.mode.batch_norm = network.name == "resnet50" ? BatchNormMode::kTrain : BatchNormMode::kAsExported;
  options.loss.kind = LossKind::kCrossEntropy;
  options.loss.labels = network.labels;
  options.loss.labels_type = network.labels_type;
  options.optimizer.method = network.name == "resnet50" ? OptimizerMethod::kSgd : OptimizerMethod::kAdamW;
  if (network.name == "resnet50") options.optimizer.momentum = 0.9;
  options.optimizer.clip = network.name == "resnet50" ? 0 : 1;
  options.precision.compute = setting.dtype;
  options.buckets.reduce = setting.dtype;
  options.buckets.cost = machine;
  if (setting.zero == 0) {  // an all-reduce is a reduce-scatter and an all-gather
    options.buckets.cost.link_gbps /= 2;
    options.buckets.cost.link_latency_us *= 2;
  }
  options.ranks = setting.ranks;
  options.zero = setting.zero;
  options.evaluation = false;
  return options;
}

std::string KindOf(const Node& node) {
  const std::string& op = node.op();
  const auto has = [&](const char* part) { return op.find(part) != std::string::npos; };
  if (node.def().collective) return "";
  if (op == "MatMul" || op == "Gemm" || op == "onnxtrain.MatMul") return "matrix products";
  if (has("Conv")) return "convolutions";
  if (has("Normalization")) return "normalizations";
  if (has("Loss")) return "loss";
  if (has("Softmax")) return "softmax";
  if (op == "Cast") return "casts";
  if (FindOptimizer(op) != nullptr || op == "onnxtrain.SquaredNorm") return "optimizer and norm";
  return "all other";
}

std::string Milliseconds(double us) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f ms", us / 1e3);
  return text;
}

std::string Gigabytes(size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f GB", static_cast<double>(bytes) / 1e9);
  return text;
}

// One step, planned, proved and simulated.
class Prediction {
 public:
  Prediction(const Network& network, const Setting& setting) : network_(network), setting_(setting) {}

  Status Run() {
    machine_.world_size = setting_.ranks;
    if (setting_.tf32) machine_ = WithTf32(machine_);
    ASSIGN_OR_RETURN(program_, ReadProgramText(network_.text));
    ASSIGN_OR_RETURN(const PassPipeline pipeline, StandardPipeline(PipelineOf(network_, setting_, machine_)));
    RETURN_IF_ERROR(pipeline.Run(program_));
    persistent_ = PlacePersistent(program_);
    ScheduleOptions options;
    options.persistent = &persistent_;
    options.buckets_in_flight = setting_.zero == 2 ? 2 : 0;
    options.cost_us = [this](const Node& node) { return NodeMicroseconds(node, machine_); };
    const Graph& graph = *program_.FindGraph("step");
    ASSIGN_OR_RETURN(plan_, Schedule(graph, options));
    RETURN_IF_ERROR(VerifyPlan(graph, plan_, {}));
    report_ = MakePlanReport(program_, persistent_, graph, plan_, setting_.zero, machine_, {machine_.link_gbps});
    return OkStatus();
  }

  int64_t parameters() const {
    int64_t count = 0;
    for (const StateEntry& entry : program_.states()) {
      if (entry.state_class == StateClass::kParameter && entry.bucket < 0) count += entry.type.elements();
    }
    for (const LayoutParameter& parameter : program_.layout().parameters()) {
      if (setting_.zero > 0) count += parameter.type.elements();
    }
    return count;
  }

  double step_us() const { return report_.links[0].makespan_us; }

  // What each rank does at least: with sharded state, its share of the optimizer.
  std::vector<FloorTerm> floor() const {
    return network_.floor(network_.batch, setting_.zero > 0 ? setting_.ranks : 1);
  }

  // Microseconds by kind of node.
  std::map<std::string, double> Kinds() const {
    std::map<std::string, double> kinds;
    std::vector<const Node*> nodes;
    for (const auto& node : report_.graph->nodes()) nodes.push_back(node.get());
    for (const PlanStep& step : plan_.steps) {
      if (step.kind != StepKind::kLaunch) continue;
      const Node& node = *nodes[static_cast<size_t>(step.node)];
      if (!KindOf(node).empty()) kinds[KindOf(node)] += NodeMicroseconds(node, machine_);
    }
    return kinds;
  }

  std::string Text() const {
    const LinkReport& link = report_.links[0];
    const double busy = report_.simulation.communication_us;
    const double hidden = busy > 0 ? 100 * (1 - std::min(1.0, link.exposed_us / busy)) : 100;
    const double floor_us = TotalMilliseconds(floor()) * 1e3;
    char head[256];
    std::snprintf(head, sizeof(head), "%d H200, ZeRO-%d, %s: step %s, %.2f times the floor of %s\n", setting_.ranks,
                  setting_.zero, PrecisionOf(setting_).c_str(), Milliseconds(step_us()).c_str(), step_us() / floor_us,
                  Milliseconds(floor_us).c_str());
    std::string text = head + FloorText();
    text += "  compute " + Milliseconds(link.compute_us) + KindsText() + "\n";
    if (setting_.ranks > 1) {
      char tail[160];
      std::snprintf(tail, sizeof(tail), "; exposed %s, least %s; %.0f %% hidden; %zu buckets\n",
                    Milliseconds(link.exposed_us).c_str(), Milliseconds(link.bound_us).c_str(), hidden,
                    program_.layout().buckets().size());
      text += "  communication " + Milliseconds(busy) + tail;
    }
    return text + "  " + std::to_string(Launches()) + " launches; " + Gigabytes(report_.memory.persistent_bytes) +
           " of state and " + Gigabytes(report_.memory.transient_bytes) + " of activations a rank\n";
  }

 private:
  int Launches() const {
    int launches = 0;
    for (const PlanStep& step : plan_.steps) launches += step.kind == StepKind::kLaunch;
    return launches;
  }

  std::string FloorText() const {
    std::string text;
    for (const FloorTerm& term : floor()) {
      text += (text.empty() ? "  floor: " : ", ") + term.name + " " + Milliseconds(term.ms * 1e3);
      if (term.hidden) text += " (beside the bytes)";
    }
    return text + "\n";
  }

  std::string KindsText() const {
    std::string text;
    for (const auto& [kind, us] : Kinds()) text += (text.empty() ? ": " : ", ") + kind + " " + Milliseconds(us);
    return text;
  }

  const Network& network_;
  const Setting setting_;
  CostModel machine_ = *FindMachine("h200");
  Program program_;
  PersistentPlacements persistent_;
  ExecutionPlan plan_;
  PlanReport report_;
};

void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = std::string(ONNXTRAIN_SOURCE_DIR) + "/tests/golden/schedule/" + name + ".txt";
  const char* update = std::getenv("UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

// No kind of node may be faster than its part of the floor: a sum would let one hide behind another's slack.
void ExpectNotBelowFloor(const Prediction& prediction) {
  EXPECT_GE(prediction.step_us() / 1e3, TotalMilliseconds(prediction.floor()));
  std::map<std::string, double> least;
  for (const FloorTerm& term : prediction.floor()) {
    if (!term.kind.empty()) least[term.kind] += term.ms;
  }
  std::map<std::string, double> kinds = prediction.Kinds();
  for (const auto& [kind, ms] : least) EXPECT_GE(kinds[kind] / 1e3, ms) << kind;
}

void ExpectSchedules(const Network& network, const std::string& golden, const std::vector<Setting>& settings) {
  std::string text = network.name + ", predicted by the cost model of an H200\n";
  for (const Setting& setting : settings) {
    Prediction prediction(network, setting);
    ASSERT_OK(prediction.Run());
    EXPECT_EQ(prediction.parameters(), network.parameters);
    ExpectNotBelowFloor(prediction);
    text += prediction.Text();
  }
  ExpectGolden(golden, text);
}

// Operators of the forward pass by name, and what its products and convolutions multiply, in 1e9.
struct ForwardPass {
  std::map<std::string, int> operators;
  double products = 0;
};

StatusOr<ForwardPass> ForwardOf(const Network& network) {
  ASSIGN_OR_RETURN(const Program program, ReadProgramText(network.text));
  ForwardPass forward;
  for (const auto& node : program.FindGraph("step")->nodes()) {
    ++forward.operators[node->op()];
    const std::string kind = KindOf(*node);
    if (kind == "matrix products" || kind == "convolutions") forward.products += WorkOf(*node).flops / 2e9;
  }
  return forward;
}

TEST(MachineSchedule, NetworksHaveTheOperatorsOfThePublishedOnes) {
  auto gpt = ForwardOf(Gpt2());
  ASSERT_OK(gpt.status());
  const std::map<std::string, int> in_gpt = {{"MatMul", 73}, {"LayerNormalization", 25}, {"Softmax", 12}, {"Gelu", 12}};
  for (const auto& [op, count] : in_gpt) EXPECT_EQ(gpt->operators[op], count) << op;
  // 123.6 M weights meet each token; each token meets all others twice a layer.
  EXPECT_NEAR(gpt->products, 16384.0 * (123568128 + 12 * 2 * 1024 * 768) / 1e9, 1e-3);
  auto resnet = ForwardOf(ResNet50());
  ASSERT_OK(resnet.status());
  const std::map<std::string, int> in_resnet = {{"Conv", 53},   {"BatchNormalization", 53}, {"Relu", 49}, {"Add", 16},
                                                {"MaxPool", 1}, {"GlobalAveragePool", 1},   {"Gemm", 1}};
  for (const auto& [op, count] : in_resnet) EXPECT_EQ(resnet->operators[op], count) << op;
  EXPECT_NEAR(resnet->products / 64, 4.09, 0.005);
}

TEST(MachineSchedule, FloorsAreThoseOfTheReference) {
  EXPECT_NEAR(TotalMilliseconds(Gpt2Floor(16, 1)), 19.6, 0.15);
  EXPECT_NEAR(TotalMilliseconds(Gpt2Floor(64, 1)), 75.6, 0.3);
  EXPECT_NEAR(TotalMilliseconds(ResNet50Floor(64, 1)), 4.7 + 0.12, 0.02);
  EXPECT_NEAR(TotalMilliseconds(ResNet50Floor(256, 1)), 18.8 + 0.12, 0.05);
}

TEST(MachineSchedule, GoldenGpt2OnOneAndEight) {
  ExpectSchedules(Gpt2(), "gpt2_124m", {{1, 0, DType::kFloat}, {1, 0, DType::kFloat, true}, {1, 0}, {8, 1}});
}

TEST(MachineSchedule, GoldenResNet50OnOneAndEight) {
  ExpectSchedules(ResNet50(), "resnet50", {{1, 0, DType::kFloat}, {1, 0, DType::kFloat, true}, {1, 0}, {8, 0}});
}

std::vector<Setting> AllSettings() {
  std::vector<Setting> settings;
  for (const int ranks : {1, 2, 4, 8}) {
    for (const int zero : {0, 1, 2}) {
      if (ranks > 1 || zero == 0) settings.push_back({ranks, zero});
    }
  }
  return settings;
}

TEST(MachineSchedule, SlowGpt2EveryWay) { ExpectSchedules(Gpt2(), "gpt2_124m_every_way", AllSettings()); }
TEST(MachineSchedule, SlowResNet50EveryWay) { ExpectSchedules(ResNet50(), "resnet50_every_way", AllSettings()); }

}  // namespace
}  // namespace onnxtrain
