// SPDX-License-Identifier: Apache-2.0
// machine_rates [--device cpu|cuda] [--size N] [--threads T] [--ranks R] [--out FILE.json]
//
// Measures the numbers of graph/cost_model.h on this machine, with the kernels that steps run: products of N by N
// matrices in float, TF32 (not on the CPU) and bfloat16, an addition of N by N floats, launches of nothing to do, and
// gathers over R ranks. Prints them and writes FILE, which `onnx-train plan --machine FILE` reads. The best of five
// rounds counts. One rank leaves the link's numbers out.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

#include "graph/op_registry.h"
#include "runtime/backend.h"
#include "runtime/file_system.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string device = "cpu";
  int64_t size = 2048;
  int64_t threads = 1;
  int64_t ranks = 1;
  std::string out;
};

StatusOr<int64_t> PositiveOf(const std::string& name, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value > 0) return value;
  return UsageError(name + " must be a whole number above 0, found '" + text + "'");
}

StatusOr<Arguments> Parse(const std::vector<std::string>& words) {
  Arguments arguments;
  const std::map<std::string, int64_t*> numbers = {
      {"--size", &arguments.size}, {"--threads", &arguments.threads}, {"--ranks", &arguments.ranks}};
  const std::map<std::string, std::string*> texts = {{"--device", &arguments.device}, {"--out", &arguments.out}};
  for (size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 == words.size()) return UsageError(words[i] + " wants a value");
    if (const auto number = numbers.find(words[i]); number != numbers.end()) {
      ASSIGN_OR_RETURN(*number->second, PositiveOf(words[i], words[i + 1]));
    } else if (const auto text = texts.find(words[i]); text != texts.end()) {
      *text->second = words[i + 1];
    } else {
      return UsageError("unknown option " + words[i] + "; there are --device --size --threads --ranks --out");
    }
  }
  return arguments;
}

// One node with its tensors on the device.
class NodeTimer {
 public:
  NodeTimer(Device& device, int threads) : device_(device), threads_(threads) {}

  Status Make(const std::string& op, const std::vector<TensorType>& inputs) {
    NodeSpec spec{op, {}, {}, {"y"}, "machine_rates", {}};
    for (const TensorType& type : inputs) {
      spec.inputs.push_back(graph_.AddInput("x" + std::to_string(spec.inputs.size()), type));
    }
    ASSIGN_OR_RETURN(const Node* node, graph_.Insert(nullptr, std::move(spec)));
    KernelContext context{*node};
    context.threads = threads_;
    ASSIGN_OR_RETURN(kernel_, device_.kernels().Create(context));
    for (const Value* input : node->inputs()) {
      RETURN_IF_ERROR(Allocate(input->type()));
      inputs_.push_back(buffers_.back()->data());
    }
    RETURN_IF_ERROR(Allocate(node->output(0)->type()));
    outputs_.push_back(buffers_.back()->data());
    RETURN_IF_ERROR(Allocate({DType::kUint8, {static_cast<int64_t>(kernel_->workspace_bytes())}}));
    args_.workspace = buffers_.back()->data();
    args_.inputs = inputs_;
    args_.outputs = outputs_;
    StreamOptions stream;
    stream.name = "compute";
    stream.threads = threads_;
    ASSIGN_OR_RETURN(stream_, device_.CreateStream(stream));
    return OkStatus();
  }

  // Seconds a launch, of the best of five rounds of `launches`.
  StatusOr<double> Seconds(int launches) {
    double best = 1e30;
    for (int round = 0; round < 6; ++round) {  // the first warms up
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < launches; ++i) stream_->Launch(*kernel_, args_);
      RETURN_IF_ERROR(stream_->Synchronize());
      const std::chrono::duration<double> took = Clock::now() - start;
      if (round > 0) best = std::min(best, took.count() / launches);
    }
    return best;
  }

 private:
  Status Allocate(const TensorType& type) {
    ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer, device_.Allocate(std::max<size_t>(1, type.bytes())));
    if (IsFloating(type.dtype)) {  // not zeros, which some units multiply faster
      Tensor values({DType::kFloat, type.shape});
      uint32_t state = 1;
      for (float& value : values.values<float>()) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
      }
      const Tensor converted = values.CastTo(type.dtype);
      RETURN_IF_ERROR(device_.CopyToDevice(buffer->data(), converted.data(), converted.bytes()));
    }
    buffers_.push_back(std::move(buffer));
    return OkStatus();
  }

  Device& device_;
  const int threads_;
  Graph graph_{OpRegistry::Default(), "rates"};
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  LaunchArgs args_;
  std::unique_ptr<Stream> stream_;
};

StatusOr<double> NodeSeconds(Device& device, const Arguments& arguments, const std::string& op,
                             const std::vector<TensorType>& inputs, int launches) {
  NodeTimer timer(device, static_cast<int>(arguments.threads));
  RETURN_IF_ERROR(timer.Make(op, inputs));
  return timer.Seconds(launches);
}

// Seconds of a gather of `bytes` in whole over all ranks, a thread each.
StatusOr<double> GatherSeconds(Backend& backend, int ranks, int64_t bytes) {
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Status> statuses(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer, backend.device(rank).Allocate(static_cast<size_t>(bytes)));
    buffers.push_back(std::move(buffer));
  }
  constexpr int kGathers = 10;
  double best = 1e30;
  for (int round = 0; round < 6; ++round) {
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        std::byte* const whole = buffers[static_cast<size_t>(rank)]->data();
        const int64_t part = bytes / ranks;
        Status& status = statuses[static_cast<size_t>(rank)];
        for (int i = 0; i < kGathers && status.ok(); ++i) {
          status = backend.communicator(rank).AllGather(whole + rank * part, whole, part, DType::kUint8, nullptr);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : statuses) RETURN_IF_ERROR(status);
    const std::chrono::duration<double> took = Clock::now() - start;
    if (round > 0) best = std::min(best, took.count() / kGathers);
  }
  return best;
}

struct Rate {
  std::string name;
  double value;
};

// The rate of float products whose factors may be rounded, on a backend of its own. The CPU has no such units.
Status MeasureTf32(const Arguments& arguments, const std::vector<TensorType>& factors, double flops,
                   std::vector<Rate>& rates) {
  if (arguments.device == "cpu") return OkStatus();
  BackendOptions options;
  options.tf32 = true;
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, OpenBackend(arguments.device, options));
  ASSIGN_OR_RETURN(const double rounded, NodeSeconds(backend->device(0), arguments, "MatMul", factors, 3));
  rates.push_back({"tf32_gflops", flops / rounded / 1e9});
  return OkStatus();
}

Status MeasureLink(Backend& backend, const Arguments& arguments, std::vector<Rate>& rates) {
  const auto ranks = static_cast<int>(arguments.ranks);
  if (ranks < 2) return OkStatus();
  const int64_t small = 256 * ranks;
  const int64_t large = (arguments.size * arguments.size * 4 + small - 1) / small * small;
  ASSIGN_OR_RETURN(const double of_small, GatherSeconds(backend, ranks, small));
  ASSIGN_OR_RETURN(const double of_large, GatherSeconds(backend, ranks, large));
  const double moved = static_cast<double>(large) * (ranks - 1) / ranks;
  rates.push_back({"link_gbps", moved * 8 / std::max(of_large - of_small, 1e-9) / 1e9});
  rates.push_back({"link_latency_us", of_small * 1e6});
  return OkStatus();
}

StatusOr<std::vector<Rate>> Measure(const Arguments& arguments) {
  BackendOptions options;
  options.ranks = static_cast<int>(arguments.ranks);
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, OpenBackend(arguments.device, options));
  Device& device = backend->device(0);
  const Shape square = {arguments.size, arguments.size};
  const double elements = static_cast<double>(arguments.size) * static_cast<double>(arguments.size);
  const double flops = 2 * elements * static_cast<double>(arguments.size);
  std::vector<Rate> rates;
  const std::vector<TensorType> singles(2, {DType::kFloat, square}), halves(2, {DType::kBfloat16, square});
  ASSIGN_OR_RETURN(const double single, NodeSeconds(device, arguments, "MatMul", singles, 3));
  rates.push_back({"gflops", flops / single / 1e9});
  RETURN_IF_ERROR(MeasureTf32(arguments, singles, flops, rates));
  ASSIGN_OR_RETURN(const double half, NodeSeconds(device, arguments, "MatMul", halves, 3));
  rates.push_back({"half_gflops", flops / half / 1e9});
  ASSIGN_OR_RETURN(const double add, NodeSeconds(device, arguments, "Add", singles, 10));
  rates.push_back({"memory_gbps", 3 * elements * 4 / add / 1e9});
  ASSIGN_OR_RETURN(const double nothing, NodeSeconds(device, arguments, "Relu", {{DType::kFloat, {1}}}, 1000));
  rates.push_back({"kernel_us", nothing * 1e6});
  RETURN_IF_ERROR(MeasureLink(*backend, arguments, rates));
  return rates;
}

Status Run(const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(const Arguments arguments, Parse(words));
  ASSIGN_OR_RETURN(const std::vector<Rate> rates, Measure(arguments));
  std::string json = "{";
  for (const Rate& rate : rates) {
    char number[64];
    std::snprintf(number, sizeof(number), "%.6g", rate.value);
    std::printf("%-16s %s\n", rate.name.c_str(), number);
    json += (json.size() == 1 ? "\"" : ", \"") + rate.name + "\": " + number;
  }
  json += "}\n";
  if (arguments.out.empty()) return OkStatus();
  PosixFileSystem files;
  return WriteFileAtomically(files, arguments.out, [&](WritableFile& file) { return file.Append(json); });
}

}  // namespace
}  // namespace onnxtrain

int main(int argc, char** argv) {
  const onnxtrain::Status status = onnxtrain::Run(std::vector<std::string>(argv + 1, argv + argc));
  if (status.ok()) return 0;
  std::fprintf(stderr, "machine_rates: %s\n", status.message().c_str());
  return 1;
}
