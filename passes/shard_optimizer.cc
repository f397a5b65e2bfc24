// SPDX-License-Identifier: Apache-2.0
#include "passes/shard_optimizer.h"

#include <algorithm>

#include "graph/graph_builder.h"
#include "passes/bucket_states.h"
#include "passes/step_structure.h"

namespace onnxtrain {
namespace {

constexpr const char* kOrigin = "shard_optimizer";
constexpr std::string_view kAllReduce = "onnxtrain.AllReduce";

// Attributes that all parameters of a bucket must share.
Attributes SharedAttributes(const Node& optimizer) {
  Attributes attributes = optimizer.attributes();
  attributes.Erase("weight_decay");
  attributes.Erase("lr_multiplier");
  return attributes;
}

std::string ParameterOf(const Program& program, const Node& optimizer) {
  return program.FindState(optimizer.input(kOptimizerWeight)->name())->parameter;
}

// One bucket of the updating graph.
struct Bucket {
  Node* reduce = nullptr;         // its AllReduce
  std::vector<Node*> optimizers;  // by place in the bucket
  StateEntry accumulator;         // stage 2 with accumulation
};

class Sharder {
 public:
  Sharder(Program& program, int stage) : program_(program), updating_(*UpdatingGraph(program)), stage_(stage) {}

  StatusOr<bool> Run() {
    if (!FindReductions()) return false;
    RETURN_IF_ERROR(FindOptimizers());
    NameStates();
    Graph& gathering = program_.accumulation == 1 ? updating_ : *program_.FindGraph("first");
    order_ = BucketsByFirstUse(gathering, states_);
    if (scattered_accumulation_) RETURN_IF_ERROR(ScatterMicroBatches());
    RETURN_IF_ERROR(ShardUpdate());
    for (const auto& [name, unused] : program_.graphs()) {
      Graph& graph = *program_.FindGraph(name);
      EraseDeadNodes(graph);
      RETURN_IF_ERROR(ReadFromBuckets(graph, program_.layout(), states_, &graph == &gathering));
    }
    program_.AddGraph(MakeGatherGraph(updating_.registry(), program_.layout(), states_, order_));
    for (const std::string& name : replaced_) program_.EraseState(name);
    return true;
  }

 private:
  // False when no bucket is reduced over the ranks.
  bool FindReductions() {
    buckets_.resize(program_.layout().buckets().size());
    bool found = false;
    for (const auto& node : updating_.nodes()) {
      if (node->op() != kAllReduce || !node->attributes().Has("bucket")) continue;
      buckets_[static_cast<size_t>(node->attributes().Int("bucket", 0))].reduce = node.get();
      found = true;
    }
    return found;
  }

  Status FindOptimizers() {
    const Layout& layout = program_.layout();
    std::map<std::string, Node*> by_parameter;
    for (Node* node : OptimizerNodes(updating_)) by_parameter[ParameterOf(program_, *node)] = node;
    for (size_t k = 0; k < buckets_.size(); ++k) {
      if (buckets_[k].reduce == nullptr)
        return InternalError("shard_optimizer: bucket " + std::to_string(k) + " is not reduced");
      for (const int index : layout.buckets()[k].parameters) {
        auto found = by_parameter.find(layout.parameters()[static_cast<size_t>(index)].name);
        if (found == by_parameter.end()) {
          return InternalError("shard_optimizer: parameter '" + layout.parameters()[static_cast<size_t>(index)].name +
                               "' of bucket " + std::to_string(k) + " has no optimizer");
        }
        buckets_[k].optimizers.push_back(found->second);
        by_parameter.erase(found);
      }
      RETURN_IF_ERROR(DemandOneMethod(buckets_[k]));
    }
    if (by_parameter.empty()) return OkStatus();
    return InternalError("shard_optimizer: parameter '" + by_parameter.begin()->first + "' is in no bucket");
  }

  static Status DemandOneMethod(const Bucket& bucket) {
    const Node& first = *bucket.optimizers[0];
    for (const Node* node : bucket.optimizers) {
      if (node->op() == first.op() && SharedAttributes(*node) == SharedAttributes(first)) continue;
      return InvalidModelError("shard_optimizer: " + first.Describe() + " and " + node->Describe() +
                               " share a bucket, but differ in more than weight decay and learning rate");
    }
    return OkStatus();
  }

  // The states of buckets, and which states they take the place of.
  void NameStates() {
    scattered_accumulation_ = stage_ == 2 && program_.accumulation > 1;
    for (size_t k = 0; k < buckets_.size(); ++k) {
      const int bucket = static_cast<int>(k);
      BucketStates states;
      states.bucket = bucket;
      states.parameter = Add(BucketEntry(program_, bucket, "parameter", StateClass::kParameter, true));
      const Node& first = *buckets_[k].optimizers[0];
      const std::vector<std::string_view>& roles = FindOptimizer(first.op())->moments;
      for (size_t m = 0; m < roles.size(); ++m) {
        if (first.input(kOptimizerMoments + m) == nullptr) continue;
        states.moments.push_back(Add(BucketEntry(program_, bucket, roles[m], StateClass::kOptimizerState, true)));
      }
      StateEntry replica = BucketEntry(program_, bucket, "replica", StateClass::kReplica, false);
      replica.type.dtype = ReplicaOf(buckets_[k]);
      states.replica = Add(std::move(replica));
      if (scattered_accumulation_) {
        buckets_[k].accumulator = Add(BucketEntry(program_, bucket, "accumulator", StateClass::kAccumulator, true));
      }
      for (const Node* node : buckets_[k].optimizers) {
        states.members.push_back(node->input(kOptimizerWeight)->name());
        Replace(*node, states.moments.size());
      }
      states_.push_back(std::move(states));
    }
  }

  // One type for all parameters of the bucket, or their own: a Layout made for another form of the step may mix them.
  DType ReplicaOf(const Bucket& bucket) const {
    const Value* first = bucket.optimizers[0]->input(kOptimizerWeight);
    const DType type = ReplicaType(program_, first->name());
    const bool common = std::all_of(bucket.optimizers.begin(), bucket.optimizers.end(), [&](const Node* node) {
      return ReplicaType(program_, node->input(kOptimizerWeight)->name()) == type;
    });
    return common ? type : first->type().dtype;
  }

  StateEntry Add(StateEntry entry) {
    program_.AddState(entry);
    return entry;
  }

  void Replace(const Node& optimizer, size_t moments) {
    for (size_t i = 0; i < moments; ++i) replaced_.push_back(optimizer.input(kOptimizerMoments + i)->name());
    replaced_.push_back(optimizer.input(kOptimizerWeight)->name());
    if (!scattered_accumulation_) return;
    if (const StateEntry* entry = AccumulatorOf(ParameterOf(program_, optimizer))) replaced_.push_back(entry->name);
  }

  const StateEntry* AccumulatorOf(const std::string& parameter) const {
    for (const StateEntry& entry : program_.states()) {
      if (entry.state_class == StateClass::kAccumulator && entry.role == "accumulator" &&
          entry.parameter == parameter) {
        return &entry;
      }
    }
    return nullptr;
  }

  // Attribute "world_size" and the like of a reduce-scatter.
  StatusOr<Value*> ReduceScatter(Graph& graph, Node* before, Value* packed, size_t bucket) {
    NodeSpec spec{"onnxtrain.ReduceScatter", {packed}, {}, {packed->name() + "_shard"}, kOrigin, {}};
    spec.attributes = {{"bucket", static_cast<int64_t>(bucket)},
                       {"op", "sum"},
                       {"world_size", static_cast<int64_t>(program_.world_size)}};
    ASSIGN_OR_RETURN(Node * node, graph.Insert(before, std::move(spec)));
    return node->output(0);
  }

  // A shard that was reduced in 16 bits, as the optimizer and the accumulator want it.
  StatusOr<Value*> InStateType(Graph& graph, Node* before, Value* shard, size_t bucket) const {
    GraphBuilder build(graph, before, kOrigin);
    Value* cast = build.Cast(shard, states_[bucket].parameter.type.dtype);
    RETURN_IF_ERROR(build.status());
    return cast;
  }

  // Stage 2: `first` and `middle` reduce their own gradients into the shard.
  Status ScatterMicroBatches() {
    for (const char* name : {"first", "middle"}) {
      Graph& graph = *program_.FindGraph(name);
      const NodeOrder order(graph);
      for (const StateEntry& entry : program_.states()) {
        Value* state = graph.FindValue(entry.name);
        if (entry.role == "accumulator" && entry.bucket < 0 && state != nullptr) graph.SetUpdate(state, nullptr);
      }
      for (size_t k = 0; k < buckets_.size(); ++k) RETURN_IF_ERROR(ScatterMicroBatch(graph, order, k));
    }
    for (Bucket& bucket : buckets_) {  // `last` packs its own gradients, not totals
      Node* pack = bucket.reduce->input(0)->producer();
      GraphBuilder build(updating_, pack, kOrigin);
      for (size_t i = 0; i < bucket.optimizers.size(); ++i) {
        Value* local = LocalGradient(build, *bucket.optimizers[i], pack->output(0)->type().dtype);
        RETURN_IF_ERROR(build.status());
        updating_.SetInput(pack, i, local);
      }
    }
    return OkStatus();
  }

  // What the graph's own micro-batch gave.
  Value* LocalGradient(const Graph& graph, const Node& optimizer) const {
    Value* gradient = graph.FindRole("gradient/" + ParameterOf(program_, optimizer));
    CHECK_WITH(gradient != nullptr, optimizer.Describe());
    return gradient;
  }

  Value* LocalGradient(GraphBuilder& build, const Node& optimizer, DType dtype) const {
    return GradientIn(build, ParameterOf(program_, optimizer), LocalGradient(build.graph(), optimizer), dtype);
  }

  Status ScatterMicroBatch(Graph& graph, const NodeOrder& order, size_t k) {
    const Bucket& bucket = buckets_[k];
    const Node* model = bucket.reduce->input(0)->producer();
    NodeSpec pack{"onnxtrain.BucketPack", {}, model->attributes(), {model->output(0)->name()}, kOrigin, {}};
    int last = -1;
    for (const Node* optimizer : bucket.optimizers) {
      pack.inputs.push_back(LocalGradient(graph, *optimizer));
      last = std::max(last, order.ReleaseOf(pack.inputs.back()));
    }
    Node* const before = order.Behind(last);
    GraphBuilder build(graph, before, kOrigin);
    for (size_t i = 0; i < pack.inputs.size(); ++i) {
      pack.inputs[i] = LocalGradient(build, *bucket.optimizers[i], model->output(0)->type().dtype);
    }
    RETURN_IF_ERROR(build.status());
    ASSIGN_OR_RETURN(Node * packed, graph.Insert(before, std::move(pack)));
    ASSIGN_OR_RETURN(Value * shard, ReduceScatter(graph, before, packed->output(0), k));
    // At the end: before, what reads the shard would wait for the collective.
    ASSIGN_OR_RETURN(shard, InStateType(graph, nullptr, shard, k));
    Value* state = StateValue(graph, bucket.accumulator);
    if (graph.name() != "first") {
      ASSIGN_OR_RETURN(shard, AddShard(graph, nullptr, state, shard));
    }
    graph.SetUpdate(state, shard);
    return OkStatus();
  }

  StatusOr<Value*> AddShard(Graph& graph, Node* before, Value* state, Value* shard) {
    GraphBuilder build(graph, before, kOrigin);
    Value* total = build.Op("Add", {state, shard}, {}, shard->name() + "_total");
    RETURN_IF_ERROR(build.status());
    return total;
  }

  // The updating graph: reduce-scatter, norm and optimizer on shards.
  Status ShardUpdate() {
    std::vector<Value*> shards;
    for (size_t k = 0; k < buckets_.size(); ++k) {
      Node* reduce = buckets_[k].reduce;
      ASSIGN_OR_RETURN(Value * shard, ReduceScatter(updating_, reduce, reduce->input(0), k));
      ASSIGN_OR_RETURN(shard, InStateType(updating_, FindNode(updating_, "onnxtrain.SquaredNorm"), shard, k));
      if (scattered_accumulation_) {
        Value* state = StateValue(updating_, buckets_[k].accumulator);
        ASSIGN_OR_RETURN(shard, AddShard(updating_, FindNode(updating_, "onnxtrain.SquaredNorm"), state, shard));
      }
      shards.push_back(shard);
    }
    RETURN_IF_ERROR(ReduceTotals(shards));
    Node* const before = OptimizerNodes(updating_).front();
    for (const size_t k : order_) RETURN_IF_ERROR(InsertOptimizer(before, k, shards[k]));
    for (Bucket& bucket : buckets_) EraseWholeUpdate(bucket);
    return OkStatus();
  }

  // totals = AllReduce (Concat (local sums, norm of shards))
  Status ReduceTotals(const std::vector<Value*>& shards) {
    Node* norm = FindNode(updating_, "onnxtrain.SquaredNorm");
    Node* control = FindNode(updating_, "onnxtrain.StepControl");
    Node* concat = control == nullptr ? nullptr : control->input(0)->producer();
    if (norm == nullptr || concat == nullptr || concat->op() != "Concat") {
      return InternalError("shard_optimizer: the step has no totals of sums and norm");
    }
    NodeSpec sharded{"onnxtrain.SquaredNorm", shards, {}, {"norm"}, kOrigin, {}};
    ASSIGN_OR_RETURN(Node * sharded_norm, updating_.Insert(norm, std::move(sharded)));
    const std::string name = norm->output(0)->name();
    updating_.SetInput(concat, 1, sharded_norm->output(0));
    updating_.Erase(norm);
    updating_.Rename(sharded_norm->output(0), name);
    updating_.SetRole("norm", sharded_norm->output(0));
    Node* sums = concat->input(0)->producer();
    if (sums->op() == kAllReduce) {
      updating_.SetInput(concat, 0, sums->input(0));
      updating_.Erase(sums);
    }
    NodeSpec reduce{std::string(kAllReduce),
                    {concat->output(0)},
                    {{"op", "sum"}},
                    {concat->output(0)->name() + "_sum"},
                    kOrigin,
                    {}};
    ASSIGN_OR_RETURN(Node * reduced, updating_.Insert(control, std::move(reduce)));
    updating_.SetInput(control, 0, reduced->output(0));
    updating_.SetRole("totals", reduced->output(0));
    return OkStatus();
  }

  // Hyper-parameters by group of the Layout.
  void SetGroups(Attributes& attributes) const {
    const Layout& layout = program_.layout();
    int groups = 0;
    for (const LayoutParameter& parameter : layout.parameters()) groups = std::max(groups, parameter.group + 1);
    std::vector<float> decays(static_cast<size_t>(groups), 0);
    std::vector<float> multipliers(static_cast<size_t>(groups), 1);
    for (size_t k = 0; k < buckets_.size(); ++k) {
      const std::vector<int>& members = layout.buckets()[k].parameters;
      for (size_t i = 0; i < members.size(); ++i) {
        const size_t group = static_cast<size_t>(layout.parameters()[static_cast<size_t>(members[i])].group);
        const Attributes& own = buckets_[k].optimizers[i]->attributes();
        decays[group] = own.Float("weight_decay", 0);
        multipliers[group] = own.Float("lr_multiplier", 1);
      }
    }
    attributes.Set("weight_decays", std::move(decays));
    attributes.Set("lr_multipliers", std::move(multipliers));
  }

  Status InsertOptimizer(Node* before, size_t k, Value* gradient) {
    const Node& whole = *buckets_[k].optimizers[0];
    const BucketStates& bucket = states_[k];
    NodeSpec spec{whole.op(), {}, SharedAttributes(whole), {}, kOrigin, {}};
    spec.attributes.Set("bucket", static_cast<int64_t>(k));
    SetGroups(spec.attributes);
    std::vector<Value*> written{StateValue(updating_, bucket.parameter)};
    for (const StateEntry& moment : bucket.moments) written.push_back(StateValue(updating_, moment));
    spec.inputs = whole.inputs();
    spec.inputs[kOptimizerWeight] = written[0];
    spec.inputs[kOptimizerGradient] = gradient;
    for (size_t i = 1; i < written.size(); ++i) spec.inputs[kOptimizerMoments + i - 1] = written[i];
    for (const Value* state : written) spec.output_names.push_back(state->name() + "_new");
    ASSIGN_OR_RETURN(Node * node, updating_.Insert(before, std::move(spec)));
    for (size_t i = 0; i < written.size(); ++i) updating_.SetUpdate(written[i], node->output(i));
    return OkStatus();
  }

  // Optimizers of whole parameters, the unpacking of whole gradients and their AllReduce.
  void EraseWholeUpdate(const Bucket& bucket) {
    for (Node* node : bucket.optimizers) {
      for (Value* input : node->inputs()) {
        if (input != nullptr && input->update() != nullptr && input->update()->producer() == node) {
          updating_.SetUpdate(input, nullptr);
        }
      }
      updating_.Erase(node);
    }
    EraseReaders(bucket.reduce->output(0));
    updating_.Erase(bucket.reduce);
  }

  // The unpacking of the whole bucket, and the Cast in front of it.
  void EraseReaders(const Value* value) {
    const std::vector<Node*> readers = value->consumers();
    for (Node* node : readers) {
      if (node->op() == "Cast") EraseReaders(node->output(0));
      updating_.Erase(node);
    }
  }

  Program& program_;
  Graph& updating_;
  const int stage_;
  bool scattered_accumulation_ = false;
  std::vector<Bucket> buckets_;
  std::vector<BucketStates> states_;
  std::vector<size_t> order_;          // buckets by first use in the step
  std::vector<std::string> replaced_;  // states that are gone afterwards
};

class ShardOptimizerPass : public Pass {
 public:
  explicit ShardOptimizerPass(ShardOptimizerOptions options) : options_(options) {}

  std::string_view name() const override { return "shard_optimizer"; }

  StatusOr<bool> Run(Program& program) const override {
    if (options_.stage != 1 && options_.stage != 2) {
      return UsageError("the ZeRO stage must be 1 or 2 here, found " + std::to_string(options_.stage));
    }
    if (program.layout().empty() || UpdatingGraph(program) == nullptr) return false;
    return Sharder(program, options_.stage).Run();
  }

 private:
  ShardOptimizerOptions options_;
};

}  // namespace

std::unique_ptr<Pass> ShardOptimizer(const ShardOptimizerOptions& options) {
  return std::make_unique<ShardOptimizerPass>(options);
}

}  // namespace onnxtrain
