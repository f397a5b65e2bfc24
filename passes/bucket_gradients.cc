// SPDX-License-Identifier: Apache-2.0
#include "passes/bucket_gradients.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/graph_builder.h"
#include "graph/op_registry.h"
#include "passes/bucket_layout.h"
#include "passes/bucket_states.h"
#include "passes/step_structure.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kAllReduce = "onnxtrain.AllReduce";

// A gradient on its way from the backward pass to the optimizer; without optimizer (build_backward alone has run) to
// its role.
struct ReducedGradient {
  std::string parameter;
  const Value* weight;
  Value* local;     // of this rank
  Node* optimizer;  // may be null, then so is `reduce`
  Node* reduce;     // its AllReduce
  int place;        // of `reduce`, or of what releases `local`
};

// Attributes of a parameter's optimizer node that make it a group.
std::pair<float, float> GroupOf(const Node& node) {
  return {node.attributes().Float("weight_decay", 0), node.attributes().Float("lr_multiplier", 1)};
}

bool ReadByGather(const Value* weight) {
  return std::any_of(weight->consumers().begin(), weight->consumers().end(), [&](const Node* node) {
    return node->op() == "Gather" ? node->input(0) == weight : node->op() == "Cast" && ReadByGather(node->output(0));
  });
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
      if (gradient.reduce != nullptr && erased_.insert(gradient.reduce).second) graph_.Erase(gradient.reduce);
    }
    if (options_.reduce != DType::kFloat) EraseDeadNodes(graph_);
    return true;
  }

 private:
  void FindGradients() {
    const std::vector<Node*> optimizers = OptimizerNodes(graph_);
    for (Node* node : optimizers) {
      Node* reduce = node->input(kOptimizerGradient)->producer();
      if (reduce == nullptr || reduce->op() != kAllReduce) continue;
      const Value* weight = node->input(kOptimizerWeight);
      const std::string& parameter = program_.FindState(weight->name())->parameter;
      gradients_.push_back({parameter, weight, reduce->input(0), node, reduce, order_.PlaceOf(reduce)});
    }
    if (optimizers.empty()) FindUnusedGradients();
    std::stable_sort(gradients_.begin(), gradients_.end(),
                     [](const auto& a, const auto& b) { return a.place < b.place; });
  }

  void FindUnusedGradients() {
    for (const StateEntry& entry : program_.states()) {
      if (entry.state_class != StateClass::kParameter) continue;
      Value* local = graph_.FindRole("gradient/" + entry.parameter);
      const Value* weight = graph_.FindValue(entry.name);
      if (local == nullptr || weight == nullptr) continue;
      gradients_.push_back({entry.parameter, weight, local, nullptr, nullptr, std::max(0, order_.ReleaseOf(local))});
    }
  }

  StatusOr<Layout> ChooseLayout() const {
    if (!options_.layout.has_value()) return MakeBucketLayout(Released(), options_, program_.world_size);
    const Layout& layout = *options_.layout;
    bool fits = layout.world_size() == program_.world_size && layout.parameters().size() == gradients_.size();
    for (const ReducedGradient& gradient : gradients_) {
      const int index = layout.FindParameter(gradient.parameter);
      fits = fits && index >= 0 && layout.parameters()[static_cast<size_t>(index)].type == gradient.weight->type();
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

  // When the first node that reads the weight begins.
  double FirstUse(const Value* weight, const std::vector<double>& ends) const {
    int first = static_cast<int>(ends.size());
    for (const Node* consumer : weight->consumers()) first = std::min(first, order_.PlaceOf(consumer));
    return first == 0 ? 0 : ends[static_cast<size_t>(first) - 1];
  }

  std::vector<ReleasedGradient> Released() const {
    const std::vector<double> ends = NodeEnds();
    std::map<std::pair<float, float>, int> groups;
    for (const Node* node : OptimizerNodes(graph_)) groups.emplace(GroupOf(*node), static_cast<int>(groups.size()));
    std::vector<ReleasedGradient> released;
    for (const ReducedGradient& gradient : gradients_) {
      const int group = gradient.optimizer == nullptr ? 0 : groups.at(GroupOf(*gradient.optimizer));
      const auto given = options_.release_us.find(gradient.parameter);
      const double release =
          given == options_.release_us.end() ? ends[static_cast<size_t>(gradient.place)] : given->second;
      released.push_back({gradient.parameter, gradient.weight->type(), group, ReadByGather(gradient.weight), release,
                          FirstUse(gradient.weight, ends), ReplicaType(program_, gradient.weight->name())});
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
    std::vector<const ReducedGradient*> members;
    std::vector<Value*> locals;
    std::vector<int64_t> offsets;
    std::vector<std::string> shapes;
    int last = 0;
    for (const int index : shape.parameters) {
      const LayoutParameter& parameter = program_.layout().parameters()[static_cast<size_t>(index)];
      members.push_back(&GradientOf(parameter.name));
      locals.push_back(members.back()->local);
      offsets.push_back(parameter.offset);
      shapes.push_back(ShapeText(parameter.type.shape));
      last = std::max(last, members.back()->place);
    }
    const int64_t number = bucket;
    GraphBuilder behind(graph_, order_.Behind(last), "bucket_gradients");
    const bool rounded = shape.dtype == DType::kFloat && options_.reduce == DType::kBfloat16;
    for (size_t i = 0; rounded && i < locals.size(); ++i) {
      locals[i] = GradientIn(behind, members[i]->parameter, members[i]->local, options_.reduce);
    }
    Value* flat = behind.Op("onnxtrain.BucketPack", std::move(locals),
                            {{"bucket", number}, {"elements", shape.elements}, {"offsets", offsets}},
                            "bucket" + std::to_string(bucket));
    if (members[0]->reduce != nullptr) {
      flat = behind.Op(kAllReduce, {flat}, {{"bucket", number}, {"op", "sum"}},
                       "bucket" + std::to_string(bucket) + "_sum");
    }
    RETURN_IF_ERROR(behind.status());
    GraphBuilder end(graph_, FindNode(graph_, "onnxtrain.SquaredNorm"), "bucket_gradients");
    flat = end.Cast(flat, shape.dtype);
    const std::vector<Value*> parts =
        end.Ops("onnxtrain.BucketUnpack", {flat}, {{"bucket", number}, {"offsets", offsets}, {"shapes", shapes}},
                members.size());
    RETURN_IF_ERROR(end.status());
    for (size_t i = 0; i < members.size(); ++i) Use(*members[i], parts[i]);
    return OkStatus();
  }

  // What read the gradient reads the unpacked one: the optimizer node and one place of the norm, or the role.
  void Use(const ReducedGradient& gradient, Value* value) {
    if (gradient.optimizer == nullptr) {
      graph_.Rename(value, graph_.UniqueName(gradient.local->name() + "_unpacked"));
      graph_.SetRole("gradient/" + gradient.parameter, value);
      return;
    }
    Value* old = gradient.reduce->output(0);
    graph_.SetInput(gradient.optimizer, kOptimizerGradient, value);
    Node* norm = FindNode(graph_, "onnxtrain.SquaredNorm");
    for (size_t i = 0; norm != nullptr && i < norm->inputs().size(); ++i) {
      if (norm->input(i) != old) continue;
      graph_.SetInput(norm, i, value);
      break;
    }
    const std::string name = old->name();
    if (old->consumers().empty()) graph_.Rename(old, graph_.UniqueName(name));
    graph_.Rename(value, graph_.UniqueName(name));
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
    if (graph == nullptr || !program.layout().empty()) return false;
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
