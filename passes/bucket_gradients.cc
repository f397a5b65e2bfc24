// SPDX-License-Identifier: Apache-2.0
#include "passes/bucket_gradients.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/op_registry.h"
#include "passes/bucket_layout.h"
#include "passes/step_structure.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kAllReduce = "onnxtrain.AllReduce";

// A gradient on its way from the backward pass to the optimizer.
struct ReducedGradient {
  std::string parameter;
  Node* optimizer;
  Node* reduce;
  int place;  // of `reduce`
};

// Attributes of a parameter's optimizer node that make it a group.
std::pair<float, float> GroupOf(const Node& node) {
  return {node.attributes().Float("weight_decay", 0), node.attributes().Float("lr_multiplier", 1)};
}

bool ReadByGather(const Value* weight) {
  return std::any_of(weight->consumers().begin(), weight->consumers().end(),
                     [&](const Node* node) { return node->op() == "Gather" && node->input(0) == weight; });
}

std::string ShapeText(const Shape& shape) {
  std::string text;
  for (const int64_t dim : shape) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return text;
}

class Bucketer {
 public:
  Bucketer(Program& program, Graph& graph, const BucketGradientsOptions& options)
      : program_(program), graph_(graph), options_(options), order_(graph) {}

  StatusOr<bool> Run() {
    FindGradients();
    if (gradients_.empty()) return false;
    ASSIGN_OR_RETURN(Layout layout, ChooseLayout());
    program_.set_layout(std::move(layout));
    for (int bucket = 0; bucket < static_cast<int>(program_.layout().buckets().size()); ++bucket) {
      RETURN_IF_ERROR(Pack(bucket));
    }
    for (const ReducedGradient& gradient : gradients_) {
      if (erased_.insert(gradient.reduce).second) graph_.Erase(gradient.reduce);
    }
    return true;
  }

 private:
  void FindGradients() {
    for (Node* node : OptimizerNodes(graph_)) {
      Node* reduce = node->input(kOptimizerGradient)->producer();
      if (reduce == nullptr || reduce->op() != kAllReduce) continue;
      const StateEntry* entry = program_.FindState(node->input(kOptimizerWeight)->name());
      gradients_.push_back({entry->parameter, node, reduce, order_.PlaceOf(reduce)});
    }
    std::stable_sort(gradients_.begin(), gradients_.end(),
                     [](const auto& a, const auto& b) { return a.place < b.place; });
  }

  StatusOr<Layout> ChooseLayout() const {
    if (!options_.layout.has_value()) return MakeBucketLayout(Released(), options_, program_.world_size);
    const Layout& layout = *options_.layout;
    bool fits = layout.world_size() == program_.world_size && layout.parameters().size() == gradients_.size();
    for (const ReducedGradient& gradient : gradients_) {
      const int index = layout.FindParameter(gradient.parameter);
      fits =
          fits && index >= 0 &&
          layout.parameters()[static_cast<size_t>(index)].type == gradient.optimizer->input(kOptimizerWeight)->type();
    }
    if (fits) return layout;
    return InternalError("bucket_gradients: the Layout of another batch shape has other parameters or ranks");
  }

  // Microseconds from the start of the graph to the end of each node.
  std::vector<double> NodeEnds() const {
    std::vector<double> ends;
    double now = 0;
    for (const auto& node : graph_.nodes()) {
      if (!node->def().collective) now += NodeMicroseconds(*node, options_.cost);
      ends.push_back(now);
    }
    return ends;
  }

  std::vector<ReleasedGradient> Released() const {
    const std::vector<double> ends = NodeEnds();
    std::map<std::pair<float, float>, int> groups;
    for (const Node* node : OptimizerNodes(graph_)) groups.emplace(GroupOf(*node), static_cast<int>(groups.size()));
    std::vector<ReleasedGradient> released;
    for (const ReducedGradient& gradient : gradients_) {
      const Value* weight = gradient.optimizer->input(kOptimizerWeight);
      const auto given = options_.release_us.find(gradient.parameter);
      const double release =
          given == options_.release_us.end() ? ends[static_cast<size_t>(gradient.place)] : given->second;
      released.push_back(
          {gradient.parameter, weight->type(), groups.at(GroupOf(*gradient.optimizer)), ReadByGather(weight), release});
    }
    return released;
  }

  const ReducedGradient& GradientOf(const std::string& parameter) const {
    return *std::find_if(gradients_.begin(), gradients_.end(),
                         [&](const ReducedGradient& gradient) { return gradient.parameter == parameter; });
  }

  // Pack and reduce right behind the last gradient of the bucket; unpack where the norm reads it, so that nothing waits
  // for the reduction before.
  Status Pack(int bucket) {
    const LayoutBucket& shape = program_.layout().buckets()[static_cast<size_t>(bucket)];
    const int64_t number = bucket;
    std::vector<const ReducedGradient*> members;
    NodeSpec pack{"onnxtrain.BucketPack", {}, {}, {"bucket" + std::to_string(bucket)}, "bucket_gradients", {}};
    NodeSpec unpack{"onnxtrain.BucketUnpack", {}, {}, {}, "bucket_gradients", {}};
    std::vector<int64_t> offsets;
    std::vector<std::string> shapes;
    int last = 0;
    for (const int index : shape.parameters) {
      const LayoutParameter& parameter = program_.layout().parameters()[static_cast<size_t>(index)];
      members.push_back(&GradientOf(parameter.name));
      pack.inputs.push_back(members.back()->reduce->input(0));
      unpack.output_names.push_back(members.back()->reduce->output(0)->name());
      offsets.push_back(parameter.offset);
      shapes.push_back(ShapeText(parameter.type.shape));
      last = std::max(last, members.back()->place);
    }
    pack.attributes = {{"bucket", number}, {"elements", shape.elements}, {"offsets", offsets}};
    unpack.attributes = {{"bucket", number}, {"offsets", offsets}, {"shapes", shapes}};
    Node* const before = order_.Behind(last);
    ASSIGN_OR_RETURN(Node * packed, graph_.Insert(before, std::move(pack)));
    NodeSpec reduce{std::string(kAllReduce),
                    {packed->output(0)},
                    {{"bucket", number}, {"op", "sum"}},
                    {packed->output(0)->name() + "_sum"},
                    "bucket_gradients",
                    {}};
    ASSIGN_OR_RETURN(Node * reduced, graph_.Insert(before, std::move(reduce)));
    unpack.inputs = {reduced->output(0)};
    ASSIGN_OR_RETURN(Node * unpacked, graph_.Insert(FindNode(graph_, "onnxtrain.SquaredNorm"), std::move(unpack)));
    for (size_t i = 0; i < members.size(); ++i) Use(*members[i], unpacked->output(i));
    return OkStatus();
  }

  // The optimizer node, and one place of the norm, read the unpacked gradient under the name of the reduced one.
  void Use(const ReducedGradient& gradient, Value* value) {
    Value* old = gradient.reduce->output(0);
    graph_.SetInput(gradient.optimizer, kOptimizerGradient, value);
    Node* norm = FindNode(graph_, "onnxtrain.SquaredNorm");
    for (size_t i = 0; i < norm->inputs().size(); ++i) {
      if (norm->input(i) != old) continue;
      graph_.SetInput(norm, i, value);
      break;
    }
    if (!old->consumers().empty()) return;
    const std::string name = old->name();
    graph_.Rename(old, graph_.UniqueName(name));
    graph_.Rename(value, name);
  }

  Program& program_;
  Graph& graph_;
  const BucketGradientsOptions& options_;
  const NodeOrder order_;
  std::vector<ReducedGradient> gradients_;  // by release
  std::set<const Node*> erased_;
};

class BucketGradientsPass : public Pass {
 public:
  explicit BucketGradientsPass(BucketGradientsOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "bucket_gradients"; }

  StatusOr<bool> Run(Program& program) const override {
    if (options_.bucket_bytes.has_value() && !(*options_.bucket_bytes > 0)) {
      return UsageError("the size of a bucket must be above 0");
    }
    Graph* graph = UpdatingGraph(program);
    if (graph == nullptr || !program.layout().empty() || FindNode(*graph, "onnxtrain.SquaredNorm") == nullptr)
      return false;
    return Bucketer(program, *graph, options_).Run();
  }

 private:
  BucketGradientsOptions options_;
};

}  // namespace

std::unique_ptr<Pass> BucketGradients(const BucketGradientsOptions& options) {
  return std::make_unique<BucketGradientsPass>(options);
}

}  // namespace onnxtrain
