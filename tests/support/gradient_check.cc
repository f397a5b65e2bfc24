// SPDX-License-Identifier: Apache-2.0
#include "tests/support/gradient_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "graph/gradient.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

// The smallest driver of gradient rules: reverse order, contributions added as they come.
class Backward {
 public:
  Backward(Graph& graph, const std::vector<std::string>& wanted) : graph_(graph) {
    for (const std::string& name : wanted) active_.insert(graph.FindValue(name));
    for (const Node* node : graph.NodesInOrder()) {
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        if (!Wanted(*node, i)) continue;
        active_.insert(node->outputs().begin(), node->outputs().end());
      }
    }
  }

  void Seed(const Value* output, Value* gradient) { gradients_[output] = gradient; }

  Status Run() {
    std::vector<Node*> nodes = graph_.NodesInOrder();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) RETURN_IF_ERROR(Visit(**node));
    return OkStatus();
  }

  Value* GradientOf(const Value* value) const {
    auto found = gradients_.find(value);
    return found == gradients_.end() ? nullptr : found->second;
  }

 private:
  bool Wanted(const Node& node, size_t index) const {
    const Value* input = node.input(index);
    const std::vector<int>& stops = node.def().stop_gradient_inputs;
    return input != nullptr && active_.contains(input) && IsFloating(input->type().dtype) &&
           std::find(stops.begin(), stops.end(), static_cast<int>(index)) == stops.end();
  }

  Status Visit(const Node& node) {
    std::vector<Value*> output_gradients;
    bool any_gradient = false;
    for (const Value* output : node.outputs()) {
      output_gradients.push_back(output == nullptr ? nullptr : GradientOf(output));
      any_gradient |= output_gradients.back() != nullptr;
    }
    std::vector<bool> wanted;
    for (size_t i = 0; i < node.inputs().size(); ++i) wanted.push_back(Wanted(node, i));
    if (!any_gradient || std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return OkStatus();
    if (!node.def().gradient) return InvalidModelError("no gradient rule of " + node.Describe());
    GraphBuilder builder(graph_, nullptr, "backward");
    GradientContext context(node, builder, output_gradients, wanted);
    RETURN_IF_ERROR(node.def().gradient(context));
    RETURN_IF_ERROR(builder.status());
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (wanted[i]) RETURN_IF_ERROR(Accumulate(builder, node, i, context.input_gradients()[i]));
    }
    return builder.status();
  }

  Status Accumulate(GraphBuilder& builder, const Node& node, size_t index, Value* gradient) {
    if (gradient == nullptr) return OkStatus();
    const Value* input = node.input(index);
    if (gradient->type() != input->type()) {
      return InternalError("gradient of input " + std::to_string(index) + " of " + node.Describe() + " is " +
                           ToString(gradient->type()) + ", not " + ToString(input->type()));
    }
    Value*& sum = gradients_[input];
    sum = sum == nullptr ? gradient : builder.Add(sum, gradient);
    return OkStatus();
  }

  Graph& graph_;
  std::set<const Value*> active_;
  std::map<const Value*, Value*> gradients_;
};

double WeightedSum(const NamedTensors& outputs, const NamedTensors& weights) {
  double sum = 0;
  for (const auto& [name, weight] : weights) {
    const Tensor& output = outputs.at(name);
    for (int64_t i = 0; i < weight.elements(); ++i) sum += weight.DoubleAt(i) * output.DoubleAt(i);
  }
  return sum;
}

double LossAt(const Graph& graph, const NamedTensors& feeds, const NamedTensors& weights) {
  StatusOr<OpRunnerResult> result = RunGraph(graph, feeds);
  if (!result.ok()) {
    ADD_FAILURE() << result.status().message();
    return std::nan("");
  }
  return WeightedSum(result->fetches, weights);
}

void CompareWithDifferences(const Graph& graph, NamedTensors feeds, const NamedTensors& weights,
                            const std::string& name, const Tensor& gradient, const GradientCheckOptions& options) {
  for (int64_t i = 0; i < gradient.elements(); ++i) {
    double& element = feeds.at(name).values<double>()[static_cast<size_t>(i)];
    const double x = element;
    const double h = options.step * std::max(1.0, std::abs(x));
    element = x + h;
    const double above = LossAt(graph, feeds, weights);
    element = x - h;
    const double below = LossAt(graph, feeds, weights);
    element = x;
    const double numeric = (above - below) / (2 * h);
    const double analytic = gradient.DoubleAt(i);
    const double scale = std::max({1.0, std::abs(numeric), std::abs(analytic)});
    ASSERT_LE(std::abs(numeric - analytic) / scale, options.tolerance)
        << "d/d" << name << "[" << i << "]: rule " << analytic << ", difference " << numeric << ", at x = " << x
        << ", seed " << options.seed;
  }
}

// The values named in subset `bits` of `names`.
std::vector<std::string> Subset(const std::vector<std::string>& names, size_t bits) {
  std::vector<std::string> chosen;
  for (size_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1) != 0) chosen.push_back(names[i]);
  }
  return chosen;
}

void CompareSubsets(const Graph& graph, const NamedTensors& feeds, const NamedTensors& weights,
                    const std::vector<std::string>& names, const NamedTensors& all) {
  for (size_t bits = 1; bits + 1 < size_t{1} << std::min<size_t>(names.size(), 5); ++bits) {
    const std::vector<std::string> wanted = Subset(names, bits);
    StatusOr<NamedTensors> some = GradientsOf(graph, feeds, weights, wanted);
    ASSERT_TRUE(some.ok()) << some.status().message();
    for (const std::string& name : wanted) {
      SCOPED_TRACE("gradient of " + name + " in subset " + std::to_string(bits));
      ASSERT_EQ(some->contains(name), all.contains(name));
      if (all.contains(name)) ExpectNear(some->at(name), all.at(name), 1e-13);
    }
  }
}

}  // namespace

StatusOr<NamedTensors> GradientsOf(const Graph& graph, const NamedTensors& feeds, const NamedTensors& weights,
                                   const std::vector<std::string>& wanted, const OpRunnerOptions& options) {
  Graph work = graph.Clone("gradient");
  while (!work.outputs().empty()) work.RemoveOutput(work.outputs().back());
  Backward backward(work, wanted);
  NamedTensors all_feeds = feeds;
  for (const auto& [name, weight] : weights) {
    backward.Seed(work.FindValue(name), work.AddInput("weight of " + name, weight.type()));
    all_feeds.emplace("weight of " + name, weight);
  }
  RETURN_IF_ERROR(backward.Run());
  OpRunnerOptions run = options;
  std::vector<std::pair<std::string, std::string>> names;
  for (const std::string& name : wanted) {
    const Value* gradient = backward.GradientOf(work.FindValue(name));
    if (gradient == nullptr) continue;
    names.emplace_back(name, gradient->name());
    run.fetches.push_back(gradient->name());
  }
  if (names.empty()) return NamedTensors{};
  ASSIGN_OR_RETURN(OpRunnerResult result, RunGraph(work, all_feeds, run));
  NamedTensors gradients;
  for (const auto& [name, gradient] : names) gradients.emplace(name, result.fetches.at(gradient));
  return gradients;
}

void ExpectGradientMatchesFiniteDifference(const Graph& graph, const NamedTensors& feeds,
                                           const GradientCheckOptions& options) {
  SCOPED_TRACE("seed " + std::to_string(options.seed));
  NamedTensors weights;
  for (const Value* output : graph.outputs()) {
    if (output->type().dtype != DType::kDouble) continue;
    weights.emplace(output->name(), RandomTensor(DType::kDouble, output->type().shape, options.seed + weights.size()));
  }
  std::vector<std::string> names;
  for (const Value* input : graph.inputs()) {
    if (input->type().dtype == DType::kDouble && !options.without_gradient.contains(input->name())) {
      names.push_back(input->name());
    }
  }
  StatusOr<NamedTensors> gradients = GradientsOf(graph, feeds, weights, names);
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  StatusOr<NamedTensors> shared = GradientsOf(graph, feeds, weights, names, {.threads = 2, .share_bytes = true});
  ASSERT_TRUE(shared.ok()) << shared.status().message();
  for (const std::string& name : names) {
    ASSERT_TRUE(gradients->contains(name)) << "no gradient of " << name;
    ExpectIdentical(shared->at(name), gradients->at(name));
    CompareWithDifferences(graph, feeds, weights, name, gradients->at(name), options);
    if (::testing::Test::HasFatalFailure()) return;
  }
  CompareSubsets(graph, feeds, weights, names, *gradients);
}

void ExpectOpGradient(std::string_view op, const std::vector<OpInput>& inputs, Attributes attributes, size_t outputs,
                      const GradientCheckOptions& options) {
  SCOPED_TRACE(std::string(op));
  Graph graph(OpRegistry::Default());
  const Status added = AddOp(graph, op, inputs, std::move(attributes), outputs);
  ASSERT_TRUE(added.ok()) << added.message();
  ExpectGradientMatchesFiniteDifference(graph, FeedsOf(inputs), options);
}

std::vector<Tensor> OpGradients(std::string_view op, const std::vector<OpInput>& inputs, const Tensor& weight,
                                Attributes attributes) {
  SCOPED_TRACE(std::string(op));
  Graph graph(OpRegistry::Default());
  std::vector<Tensor> gradients(inputs.size());
  const Status added = AddOp(graph, op, inputs, std::move(attributes));
  if (!added.ok()) {
    ADD_FAILURE() << added.message();
    return gradients;
  }
  std::vector<std::string> wanted;
  for (const Value* input : graph.inputs()) wanted.push_back(input->name());
  StatusOr<NamedTensors> found = GradientsOf(graph, FeedsOf(inputs), {{graph.outputs()[0]->name(), weight}}, wanted);
  if (!found.ok()) {
    ADD_FAILURE() << found.status().message();
    return gradients;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto entry = found->find("x" + std::to_string(i));
    if (entry != found->end()) gradients[i] = std::move(entry->second);
  }
  return gradients;
}

}  // namespace onnxtrain
