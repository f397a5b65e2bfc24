// SPDX-License-Identifier: Apache-2.0
#include "tools/backend_test.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "graph/onnx_model.h"
#include "graph/onnx_reader.h"
#include "graph/tensor_proto_file.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/node_runner.h"

namespace onnxtrain {
namespace {

namespace fs = std::filesystem;

constexpr double kRelative = 1e-3;
constexpr double kAbsolute = 1e-7;

using Tensors = std::map<std::string, Tensor>;

// A reason to leave a test out, with its operator.
struct Skip {
  std::string op;
  std::string reason;
};

bool Held(const ModelValue& value) { return value.dtype != DType::kUndefined && value.dtype != DType::kString; }

// "Add" in "... (Add, opset 14) ...", or the model's first operator.
std::string OpIn(const std::string& message, const OnnxModel& model) {
  const size_t end = message.find(", opset ");
  const size_t begin = end == std::string::npos ? end : message.rfind('(', end);
  if (begin != std::string::npos) return message.substr(begin + 1, end - begin - 1);
  return model.nodes().empty() ? "no operator" : model.nodes()[0].op;
}

std::string Pointed(int64_t index, const Shape& shape) {
  std::string text;
  for (size_t axis = shape.size(); axis-- > 0;) {
    text = std::to_string(index % shape[axis]) + (text.empty() ? "" : ",") + text;
    index /= shape[axis];
  }
  return "[" + text + "]";
}

// Of 16 bits a unit in the last place is 2^-7 or 2^-10 of the value at most, and two right evaluations that round
// inside may be one or two apart.
double RelativeTolerance(DType dtype) {
  return dtype == DType::kBfloat16 ? 0x1p-6 : dtype == DType::kFloat16 ? 0x1p-9 : kRelative;
}

bool Close(double found, double expected, double relative) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found)) return found == expected;
  return std::abs(found - expected) <= kAbsolute + relative * std::abs(expected);
}

Status Compare(const std::string& name, const Tensor& found, const Tensor& expected) {
  if (!(found.type() == expected.type())) {
    return InvalidDataError("output '" + name + "' is " + ToString(found.type()) + ", expected " +
                            ToString(expected.type()));
  }
  for (int64_t i = 0; i < expected.elements(); ++i) {
    if (Close(found.DoubleAt(i), expected.DoubleAt(i), RelativeTolerance(expected.dtype()))) continue;
    char numbers[64];
    std::snprintf(numbers, sizeof(numbers), "%.9g, expected %.9g", found.DoubleAt(i), expected.DoubleAt(i));
    return InvalidDataError("output '" + name + "'" + Pointed(i, expected.shape()) + " is " + numbers);
  }
  return OkStatus();
}

StatusOr<Tensors> ReadTensors(const fs::path& folder, const char* kind, const std::vector<ModelValue>& values) {
  Tensors tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    const fs::path file = folder / (kind + ("_" + std::to_string(i)) + ".pb");
    if (!fs::exists(file)) continue;  // an optional input that is left out
    ASSIGN_OR_RETURN(tensors[values[i].name], ReadTensorProtoFile(file.string()));
  }
  return tensors;
}

// What may decide shapes, in growing measure: nothing, lists and single integers, all scalars and lists, everything.
Tensors ConstantsOf(const Tensors& inputs, int measure) {
  Tensors constants;
  for (const auto& [name, tensor] : inputs) {
    const bool small = tensor.type().rank() <= 1;
    const bool integer = !IsFloating(tensor.dtype());
    if (measure == 3 || (measure >= 1 && small && integer) || (measure == 2 && small)) constants[name] = tensor;
  }
  return constants;
}

class DataSet {
 public:
  DataSet(const OnnxModel& model, int threads) : model_(model), threads_(threads) {}

  // The reason to skip it, if any; an error is a failure.
  StatusOr<std::optional<Skip>> Run(const fs::path& folder) {
    ASSIGN_OR_RETURN(inputs_, ReadTensors(folder, "input", model_.inputs()));
    ASSIGN_OR_RETURN(const Tensors expected, ReadTensors(folder, "output", model_.outputs()));
    ASSIGN_OR_RETURN(std::optional<Skip> skip, Prepare());
    if (skip) return skip;
    for (const auto& [name, tensor] : inputs_) {
      const Value* value = graph_->FindValue(name);
      if (value != nullptr && value->kind() == ValueKind::kInput) RETURN_IF_ERROR(runner_->Set(name, tensor));
    }
    RETURN_IF_ERROR(runner_->Run());
    for (const auto& [name, tensor] : expected) {
      ASSIGN_OR_RETURN(const Tensor found, runner_->Get(name));
      RETURN_IF_ERROR(Compare(name, found, tensor));
    }
    return std::optional<Skip>();
  }

 private:
  StatusOr<std::optional<Skip>> Prepare() {
    Status made;
    for (int measure = 0; measure <= 3; ++measure) {
      made = Make(ConstantsOf(inputs_, measure));
      if (made.ok()) return std::optional<Skip>();
      if (made.code() != StatusCode::kInvalidModel) return made;
    }
    return std::optional<Skip>({OpIn(made.message(), model_), made.message()});
  }

  Status Make(Tensors constants) {
    SpecializeOptions options;
    for (const auto& [name, tensor] : inputs_) options.inputs[name] = tensor.type();
    options.constants = std::move(constants);
    ASSIGN_OR_RETURN(Graph graph, Specialize(model_, options));
    runner_.reset();
    graph_.emplace(std::move(graph));
    NodeRunnerOptions runner;
    runner.threads = threads_;
    ASSIGN_OR_RETURN(runner_, NodeRunner::Create(*graph_, device_.kernels(), runner));
    return OkStatus();
  }

  const OnnxModel& model_;
  const int threads_;
  const CpuDevice device_;
  Tensors inputs_;
  std::optional<Graph> graph_;
  std::unique_ptr<NodeRunner> runner_;
};

// Inputs and outputs of types that no kernel can hold.
std::optional<Skip> UnheldTypes(const OnnxModel& model) {
  for (const auto* values : {&model.inputs(), &model.outputs()}) {
    for (const ModelValue& value : *values) {
      if (!Held(value)) return Skip{OpIn("", model), "'" + value.name + "' is " + value.type + ", which is not held"};
    }
  }
  return std::nullopt;
}

std::vector<fs::path> DataSetsOf(const fs::path& folder) {
  std::vector<fs::path> sets;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().rfind("test_data_set_", 0) == 0) sets.push_back(entry.path());
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

}  // namespace

StatusOr<std::vector<std::string>> FindTestFolders(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return UsageError("there is no folder '" + folder + "'");
  std::vector<std::string> found;
  if (fs::exists(fs::path(folder) / "model.onnx", error)) found.push_back(folder);
  for (fs::recursive_directory_iterator entry(folder, error), end; entry != end; entry.increment(error)) {
    if (entry->is_directory(error) && fs::exists(entry->path() / "model.onnx", error))
      found.push_back(entry->path().string());
  }
  if (found.empty()) return UsageError("'" + folder + "' holds no test folder: no model.onnx in it or below it");
  std::sort(found.begin(), found.end());
  return found;
}

TestResult RunTestFolder(const std::string& folder, int threads) {
  const auto failed = [&](const std::string& reason) { return TestResult{folder, TestOutcome::kFailed, reason, ""}; };
  const auto skipped = [&](const Skip& skip) {
    return TestResult{folder, TestOutcome::kSkipped, skip.reason, skip.op};
  };
  const StatusOr<OnnxModel> model = OnnxModel::Load((fs::path(folder) / "model.onnx").string());
  if (!model.ok()) return failed(model.status().message());
  if (const std::optional<Skip> skip = UnheldTypes(*model)) return skipped(*skip);
  const std::vector<fs::path> sets = DataSetsOf(folder);
  if (sets.empty()) return failed("no test_data_set_* beside model.onnx");
  for (const fs::path& set : sets) {
    const StatusOr<std::optional<Skip>> skip = DataSet(*model, threads).Run(set);
    if (!skip.ok()) return failed(set.filename().string() + ": " + skip.status().message());
    if (*skip) return skipped(**skip);
  }
  return {folder, TestOutcome::kPassed, "", ""};
}

}  // namespace onnxtrain
