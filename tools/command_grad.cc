// SPDX-License-Identifier: Apache-2.0
// onnx-train grad: gradients of one batch, node by node, in single or double precision, and their check against central
// differences.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "graph/onnx_model.h"
#include "graph/program.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/data/npz.h"
#include "runtime/gradient_program.h"
#include "runtime/node_runner.h"
#include "tools/command.h"
#include "tools/number_text.h"
#include "tools/run_session.h"

namespace onnxtrain {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kElementsATensor = 64;  // sampled by --numeric

struct GradArguments {
  RunOptions run;
  std::vector<std::string> with_respect_to;
  std::string dtype = "f32";
  std::string out;
  bool numeric = false;
  double tolerance = 1e-6;
};

Status Declare(OptionSet& options, GradArguments& arguments) {
  options.Section("Gradients");
  options.Strings("wrt", &arguments.with_respect_to, "NAME", "initializer, input or intermediate value");
  options.String("out", &arguments.out, "FILE.npz", "loss, output/NAME and grad/NAME; else a table");
  options.Choice("dtype", &arguments.dtype, {"f32", "f64"}, "precision of the whole graph", {"bf16", "f16"});
  options.Choice("device", &arguments.run.training.device, {"cpu"}, "where it runs", {"cuda"});
  options.Flag("numeric", &arguments.numeric, "compare with central differences in double");
  options.Double("tolerance", &arguments.tolerance, "X", "of --numeric (1e-6)", {0, true});
  options.Strings("feed", &arguments.run.feed, "NAME=FILE", "npy, npz or NAME=[[1,2]]");
  options.Custom("threads", "T", "compute threads", [&arguments](const std::string& value) -> Status {
    ASSIGN_OR_RETURN(const int64_t threads, ParseInt(value));
    if (threads < 1) return UsageError("must be at least 1");
    arguments.run.training.threads = static_cast<int>(threads);
    return OkStatus();
  });
  options.Custom("seed", "K", "of random draws and of the elements that --numeric takes",
                 [&arguments](const std::string& value) -> Status {
                   ASSIGN_OR_RETURN(const int64_t seed, ParseInt(value));
                   arguments.run.training.seed = static_cast<uint64_t>(seed);
                   return OkStatus();
                 });
  AddOutputOptions(options, arguments.run);
  return OkStatus();
}

// One evaluation of the graph; states and inputs are set.
StatusOr<double> Loss(NodeRunner& runner, const Graph& graph) {
  RETURN_IF_ERROR(runner.Run());
  return runner.value(graph.FindRole("loss")).DoubleAt(0);
}

struct Difference {
  double worst = 0;
  int64_t element = 0;
  double analytic = 0;
  double numeric = 0;
};

// Central differences of up to kElementsATensor elements of one target. Error |a - n| / max(1, |a|, |n|).
StatusOr<Difference> Compare(NodeRunner& runner, const Graph& graph, const Tensor& gradient, const std::string& target,
                             const Tensor& value, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<int64_t> elements(static_cast<size_t>(value.elements()));
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<int64_t>(i);
  if (value.elements() > kElementsATensor) {
    std::shuffle(elements.begin(), elements.end(), generator);
    elements.resize(kElementsATensor);
  }
  Difference worst;
  for (int64_t element : elements) {
    const double at = value.DoubleAt(element);
    const double step = 1e-6 * std::max(1.0, std::abs(at));
    double losses[2];
    for (int side = 0; side < 2; ++side) {
      Tensor moved = value;
      moved.values<double>()[static_cast<size_t>(element)] = at + (side == 0 ? step : -step);
      RETURN_IF_ERROR(runner.Set(target, moved));
      ASSIGN_OR_RETURN(losses[side], Loss(runner, graph));
    }
    const double numeric = (losses[0] - losses[1]) / (2 * step);
    const double analytic = gradient.DoubleAt(element);
    const double error = std::abs(analytic - numeric) / std::max({1.0, std::abs(analytic), std::abs(numeric)});
    if (error >= worst.worst) worst = {error, element, analytic, numeric};
  }
  RETURN_IF_ERROR(runner.Set(target, value));
  return worst;
}

struct Gradients {
  double loss = 0;
  std::vector<NamedTensor> entries;  // as in the npz
  bool finite = true;
};

bool AllFinite(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (!std::isfinite(tensor.DoubleAt(i))) return false;
  }
  return true;
}

Gradients Collect(const NodeRunner& runner, const GradientProgram& gradients) {
  const Graph& graph = *gradients.program.FindGraph("step");
  Gradients result;
  result.loss = runner.value(graph.FindRole("loss")).DoubleAt(0);
  result.finite = std::isfinite(result.loss);
  result.entries.emplace_back("loss", Tensor::Scalar(result.loss));
  for (const std::string& output : gradients.outputs) {
    result.entries.emplace_back("output/" + output, runner.value(graph.FindValue(output)));
  }
  for (const std::string& target : gradients.targets) {
    const Value* gradient = graph.FindRole("gradient/" + target);
    const Value* value = graph.FindValue(target);
    Tensor tensor = gradient == nullptr ? Tensor(value->type()) : runner.value(gradient);
    result.finite = result.finite && AllFinite(tensor);
    result.entries.emplace_back("grad/" + target, std::move(tensor));
  }
  return result;
}

double TwoNorm(const Tensor& tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) sum += tensor.DoubleAt(i) * tensor.DoubleAt(i);
  return std::sqrt(sum);
}

void PrintTable(const Gradients& gradients) {
  std::vector<std::vector<std::string>> rows{{"tensor", "type", "2-norm"}};
  for (const auto& [name, tensor] : gradients.entries) {
    rows.push_back({name, ToString(tensor.type()), NumberText(TwoNorm(tensor))});
  }
  Console::Print(Table(rows));
}

void PrintJson(const Gradients& gradients) {
  Json json{{"loss", NumberJson<Json>(gradients.loss)}, {"tensors", Json::array()}};
  for (const auto& [name, tensor] : gradients.entries) {
    json["tensors"].push_back({{"name", name},
                               {"dtype", NameOf(tensor.dtype())},
                               {"shape", tensor.shape()},
                               {"norm", NumberJson<Json>(TwoNorm(tensor))}});
  }
  Console::Print(JsonText(json));
}

Status NotFinite(const Gradients& gradients) {
  std::string names;
  for (const auto& [name, tensor] : gradients.entries) {
    if (!AllFinite(tensor)) names += (names.empty() ? "" : ", ") + name;
  }
  return NonFiniteError("not finite: " + names + " (loss " + NumberText(gradients.loss) + ")");
}

struct Comparison {
  std::string target;
  Difference worst;
};

StatusOr<std::vector<Comparison>> CompareAll(NodeRunner& runner, const GradientProgram& gradients,
                                             const Gradients& analytic, uint64_t seed) {
  const Graph& graph = *gradients.program.FindGraph("step");
  std::vector<Comparison> comparisons;
  for (const auto& [name, gradient] : analytic.entries) {
    if (name.rfind("grad/", 0) != 0) continue;
    const std::string target = name.substr(5);
    const Value* value = graph.FindValue(target);
    if (value->kind() != ValueKind::kState && value->kind() != ValueKind::kInput) {
      return UsageError("--numeric moves initializers and inputs; '" + target + "' is computed by the graph");
    }
    const Tensor start = runner.value(value);
    ASSIGN_OR_RETURN(const Difference worst, Compare(runner, graph, gradient, target, start, seed));
    comparisons.push_back({target, worst});
  }
  return comparisons;
}

void PrintComparisons(const std::vector<Comparison>& comparisons, double loss, bool passed, bool json) {
  if (json) {
    Json out{{"loss", NumberJson<Json>(loss)}, {"passed", passed}, {"gradients", Json::array()}};
    for (const auto& [target, worst] : comparisons) {
      out["gradients"].push_back({{"name", target},
                                  {"error", NumberJson<Json>(worst.worst)},
                                  {"element", worst.element},
                                  {"analytic", NumberJson<Json>(worst.analytic)},
                                  {"numeric", NumberJson<Json>(worst.numeric)}});
    }
    Console::Print(JsonText(out));
    return;
  }
  std::vector<std::vector<std::string>> rows{{"tensor", "largest error", "element", "analytic", "numeric"}};
  for (const auto& [target, worst] : comparisons) {
    char cells[3][32];
    std::snprintf(cells[0], 32, "%.3g", worst.worst);
    std::snprintf(cells[1], 32, "%.9g", worst.analytic);
    std::snprintf(cells[2], 32, "%.9g", worst.numeric);
    rows.push_back({target, cells[0], std::to_string(worst.element), cells[1], cells[2]});
  }
  Console::Print(Table(rows));
}

StatusOr<int> CompareAndPrint(NodeRunner& runner, const GradientProgram& made, const Gradients& gradients,
                              const GradArguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<Comparison> comparisons,
                   CompareAll(runner, made, gradients, arguments.run.training.seed));
  const bool passed = std::all_of(comparisons.begin(), comparisons.end(),
                                  [&](const Comparison& each) { return each.worst.worst <= arguments.tolerance; });
  PrintComparisons(comparisons, gradients.loss, passed, arguments.run.json);
  if (!passed) Console::Error("onnx-train grad: gradients differ from central differences by more than --tolerance");
  return passed ? 0 : 1;
}

Status SetAll(NodeRunner& runner, const GradientProgram& gradients, const FeedBatch& batch) {
  const Graph& graph = *gradients.program.FindGraph("step");
  for (const auto& [name, tensor] : batch.tensors) {
    const Value* input = graph.FindValue(name);
    if (input != nullptr && input->kind() == ValueKind::kInput) RETURN_IF_ERROR(runner.Set(name, tensor));
  }
  for (const Value* state : graph.states()) {
    const auto initial = gradients.program.initial.find(CanonicalName(*gradients.program.FindState(state->name())));
    if (initial != gradients.program.initial.end()) RETURN_IF_ERROR(runner.Set(state->name(), initial->second));
  }
  return OkStatus();
}

StatusOr<int> Finish(NodeRunner& runner, const GradientProgram& made, const GradArguments& arguments) {
  const Gradients gradients = Collect(runner, made);
  if (!arguments.out.empty()) {
    PosixFileSystem files;
    RETURN_IF_ERROR(WriteNpz(files, arguments.out, std::span<const NamedTensor>(gradients.entries)));
  }
  if (!gradients.finite) return NotFinite(gradients);
  if (arguments.numeric) return CompareAndPrint(runner, made, gradients, arguments);
  if (arguments.run.json) {
    PrintJson(gradients);
  } else if (arguments.out.empty()) {
    PrintTable(gradients);
  }
  return 0;
}

}  // namespace

StatusOr<int> RunGrad(const std::vector<std::string>& raw) {
  GradArguments arguments;
  OptionSet options;
  AddGradientLossOptions(options, arguments.run);
  RETURN_IF_ERROR(Declare(options, arguments));
  RETURN_IF_ERROR(options.Parse(raw));
  if (options.help_wanted()) {
    Console::Print(options.Help("grad", "gradients of one batch"));
    return 0;
  }
  RETURN_IF_ERROR(CheckTogether(options, arguments.run));
  Console console(arguments.run.quiet);
  TrainingOptions& training = arguments.run.training;
  if (arguments.numeric || arguments.dtype == "f64") training.dtype = DType::kDouble;
  ASSIGN_OR_RETURN(const OnnxModel model, LoadModelFor(arguments.run, console));
  ASSIGN_OR_RETURN(const FeedBatch batch, ReadFeedBatch(model, arguments.run));
  for (const std::string& note : batch.notes) console.Note("note: " + note);
  ASSIGN_OR_RETURN(GradientProgram made, BuildGradientProgram(model, training, arguments.with_respect_to));
  for (const std::string& note : made.notes) console.Note("note: " + note);
  RETURN_IF_ERROR(SetInitialWeights(model, arguments.run, made.program));
  const CpuDevice device;
  NodeRunnerOptions runner_options;
  runner_options.threads = training.threads;
  runner_options.seed = training.seed;
  ASSIGN_OR_RETURN(std::unique_ptr<NodeRunner> runner,
                   NodeRunner::Create(*made.program.FindGraph("step"), device.kernels(), runner_options));
  RETURN_IF_ERROR(SetAll(*runner, made, batch));
  RETURN_IF_ERROR(runner->Run());
  return Finish(*runner, made, arguments);
}

}  // namespace onnxtrain
