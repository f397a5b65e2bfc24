// SPDX-License-Identifier: Apache-2.0
#include "graph/cost.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

double Elements(const Value* value) { return value == nullptr ? 0.0 : static_cast<double>(value->type().elements()); }
double Bytes(const Value* value) { return value == nullptr ? 0.0 : static_cast<double>(value->type().bytes()); }

double TotalBytes(const std::vector<Value*>& values) {
  double total = 0;
  for (const Value* value : values) total += Bytes(value);
  return total;
}

double LargestElements(const Node& node) {
  double largest = 0;
  for (const Value* value : node.inputs()) largest = std::max(largest, Elements(value));
  for (const Value* value : node.outputs()) largest = std::max(largest, Elements(value));
  return largest;
}

// The length of the axis that a matrix product sums over.
int64_t Depth(const Node& node) {
  const Shape& a = node.input(0)->type().shape;
  if (a.empty()) return 1;
  if (node.op() == "Gemm") return a[node.attributes().Int("transA", 0) != 0 ? 0 : a.size() - 1];
  const std::vector<int64_t> permutation = node.attributes().Ints("perm_a");
  return permutation.size() == a.size() ? a[static_cast<size_t>(permutation.back())] : a.back();
}

// Multiplications and additions of a convolution or of one of its gradients, which join the same three tensors: every
// element of y meets the weights of its channel. Nothing for other operators.
std::optional<double> ConvolutionFlops(const Node& node) {
  const std::string& op = node.op();
  const Value* y = nullptr;
  const Value* w = nullptr;
  if (op == "Conv") {
    y = node.output(0);
    w = node.input(1);
  } else if (op == "ConvTranspose" || op == "onnxtrain.ConvInputGrad") {  // its input is a convolution's output
    y = node.input(0);
    w = node.input(1);
  } else if (op == "onnxtrain.ConvWeightGrad") {
    y = node.input(0);
    w = node.output(0);
  }
  if (y == nullptr || w == nullptr || w->type().rank() == 0) return std::nullopt;
  return 2 * Elements(y) * Elements(w) / static_cast<double>(std::max<int64_t>(w->type().shape[0], 1));
}

// Operations an element of functions that are no single instruction; a rough constant serves.
double OperationsPerElement(std::string_view op) {
  constexpr std::array<std::string_view, 14> kHeavy = {"Exp",  "Log",     "Erf",        "Tanh",    "Sigmoid",
                                                       "Gelu", "Pow",     "Sin",        "Cos",     "Sqrt",
                                                       "Mish", "Softmax", "LogSoftmax", "Softplus"};
  if (std::find(kHeavy.begin(), kHeavy.end(), op) != kHeavy.end()) return 10;
  return IsOwnOp(op) || op.find("Normalization") != std::string_view::npos ? 6 : 1;
}

// What runs on units for 16-bit factors.
bool IsHalfProduct(const Node& node) {
  const std::string& op = node.op();
  const bool product =
      op == "MatMul" || op == "Gemm" || op == "onnxtrain.MatMul" || op.find("Conv") != std::string::npos;
  return product && SizeOf(node.input(0)->type().dtype) == 2;
}

bool IsGather(std::string_view op) {
  return op == "Gather" || op == "GatherElements" || op == "GatherND" || op == "Slice" || op == "Split";
}

// Whether every output is bytes of an input, or the planner may make it so.
bool MovesNothing(const Node& node) {
  if (!node.def().aliases) return false;
  const std::vector<AliasRule> rules = node.def().aliases(node);
  const auto free = [](const AliasRule& rule) { return rule.kind != AliasRule::Kind::kInPlace; };
  return !rules.empty() && std::all_of(rules.begin(), rules.end(), free);
}

double CollectiveBytes(const Node& node) { return std::max(TotalBytes(node.inputs()), TotalBytes(node.outputs())); }

}  // namespace

NodeWork WorkOf(const Node& node) {
  const std::string& op = node.op();
  NodeWork work;
  // A gather reads only what it returns.
  work.bytes = TotalBytes(node.outputs()) + (IsGather(op) ? TotalBytes(node.outputs()) : TotalBytes(node.inputs()));
  if (op == "MatMul" || op == "Gemm" || op == "onnxtrain.MatMul") {
    work.flops = 2 * Elements(node.output(0)) * static_cast<double>(Depth(node));
  } else if (const std::optional<double> flops = ConvolutionFlops(node)) {
    work.flops = *flops;
  } else {
    work.flops = OperationsPerElement(op) * LargestElements(node);
  }
  return work;
}

double CollectiveMicroseconds(double bytes, const CostModel& model) {
  if (model.world_size <= 1) return 0;
  const double ranks = model.world_size;
  return model.link_latency_us + bytes * 8 / (model.link_gbps * 1e3) * (ranks - 1) / ranks;
}

std::map<std::string, double, std::less<>> GradientReleaseTimes(const Graph& graph, const CostModel& model) {
  constexpr std::string_view kPrefix = "gradient/";
  std::unordered_map<const Value*, double> end;
  double now = 0;
  for (const auto& node : graph.nodes()) {
    if (!node->def().collective) now += NodeMicroseconds(*node, model);
    for (const Value* output : node->outputs()) end[output] = now;
  }
  std::map<std::string, double, std::less<>> releases;
  for (const auto& [role, value] : graph.roles()) {
    if (role.rfind(kPrefix, 0) != 0) continue;
    const auto found = end.find(value);
    releases[role.substr(kPrefix.size())] = found == end.end() ? 0.0 : found->second;
  }
  return releases;
}

double NodeMicroseconds(const Node& node, const CostModel& model) {
  if (node.def().collective) {
    const double once = CollectiveMicroseconds(CollectiveBytes(node), model);
    // An all-reduce is a reduce-scatter and an all-gather.
    return node.op() == "onnxtrain.AllReduce" ? 2 * once : once;
  }
  if (MovesNothing(node)) return 0;
  const NodeWork work = WorkOf(node);
  const double gflops = IsHalfProduct(node) ? model.half_gflops : model.gflops;
  return model.kernel_us + std::max(work.flops / (gflops * 1e3), work.bytes / (model.memory_gbps * 1e3));
}

}  // namespace onnxtrain
