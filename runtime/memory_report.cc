// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <unordered_map>

#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

// What the formulas speak of.
struct Sizes {
  size_t parameters = 0;  // P
  size_t padded = 0;      // P+padding
  size_t ranks = 1;       // N
  size_t moments = 0;     // k
};

Sizes SizesOf(const Program& program) {
  Sizes sizes;
  sizes.ranks = static_cast<size_t>(program.world_size);
  std::set<std::string> roles;
  for (const StateEntry& state : program.states()) {
    if (state.state_class == StateClass::kOptimizerState) roles.insert(state.role);
    if (state.state_class == StateClass::kParameter && program.layout().empty()) sizes.parameters += state.type.bytes();
  }
  sizes.moments = roles.size();
  for (const LayoutParameter& parameter : program.layout().parameters()) sizes.parameters += parameter.type.bytes();
  for (const LayoutBucket& bucket : program.layout().buckets()) {
    sizes.padded += static_cast<size_t>(bucket.elements) * SizeOf(bucket.dtype);
  }
  return sizes;
}

size_t BytesOf(const Program& program, StateClass state_class) {
  size_t bytes = 0;
  for (const StateEntry& state : program.states()) {
    if (state.state_class == state_class) bytes += state.type.bytes();
  }
  return bytes;
}

// Bytes that 16-bit replicas of float buckets save.
size_t SavedByHalfReplicas(const Program& program) {
  size_t saved = 0;
  for (const StateEntry& state : program.states()) {
    if (state.state_class != StateClass::kReplica) continue;
    const LayoutBucket& bucket = program.layout().buckets()[static_cast<size_t>(state.bucket)];
    saved += static_cast<size_t>(bucket.elements) * SizeOf(bucket.dtype) - state.type.bytes();
  }
  return saved;
}

// What the buckets of the graph's gradients take, by the type in which they are reduced.
size_t BytesOfPackedBuckets(const Program& program, const Graph& graph) {
  size_t bytes = 0;
  for (const std::unique_ptr<Node>& node : graph.nodes()) {
    if (node->op() != "onnxtrain.BucketPack") continue;
    const auto index = static_cast<size_t>(node->attributes().Int("bucket", 0));
    bytes += static_cast<size_t>(program.layout().buckets()[index].elements) * SizeOf(node->output(0)->type().dtype);
  }
  return bytes;
}

size_t BytesOfAccumulators(const Program& program) {
  size_t bytes = 0;
  for (const StateEntry& state : program.states()) {
    if (state.state_class == StateClass::kAccumulator && state.role == "accumulator") bytes += state.type.bytes();
  }
  return bytes;
}

size_t BytesOfConstants(const PersistentPlacements& persistent) {
  std::set<size_t> places;
  size_t bytes = 0;
  for (const auto& [value, place] : persistent.constants) {
    if (places.insert(place.offset).second) bytes += place.bytes;
  }
  return bytes;
}

void AddFormulaLines(const Program& program, int stage, std::vector<MemoryLine>& lines) {
  const Sizes sizes = SizesOf(program);
  const bool sharded = stage > 0 && sizes.ranks > 1;
  const size_t shard = sizes.padded / sizes.ranks;
  const std::string k = std::to_string(sizes.moments) + "*";
  const std::string whole = sharded ? "(P+padding)/N" : "P";
  const size_t each = sharded ? shard : sizes.parameters;
  lines.push_back({"parameters", BytesOf(program, StateClass::kParameter), whole, each});
  if (sizes.moments != 0) {
    lines.push_back({"moments", BytesOf(program, StateClass::kOptimizerState), k + whole, sizes.moments * each});
  }
  if (sharded) {
    const size_t saved = SavedByHalfReplicas(program);
    const std::string halves = saved == 0 ? "" : "-H/2";
    lines.push_back(
        {"replicas", BytesOf(program, StateClass::kReplica), "P+padding" + halves, sizes.padded - saved});
  }
  if (program.accumulation > 1) {
    const bool shards = sharded && stage == 2;
    lines.push_back({"accumulators", BytesOfAccumulators(program), shards ? "(P+padding)/N" : "P",
                     shards ? shard : sizes.parameters});
  }
}

// Follows the plan with vector clocks: which accesses of a bucket stream 0 knows to be over.
class FlightCount {
 public:
  FlightCount(const Graph& graph, const ExecutionPlan& plan) : plan_(plan) {
    for (const std::unique_ptr<Node>& node : graph.nodes()) nodes_.push_back(node.get());
    for (const PlacedValue& placed : plan.placements) {
      const Node* producer = placed.value->producer();
      if (producer != nullptr && producer->op() == "onnxtrain.BucketPack") AddBucket(placed);
    }
    for (const PlacedValue& placed : plan.placements) places_[placed.value] = placed.placement;
    clocks_.resize(plan.streams.size());
    events_.resize(static_cast<size_t>(plan.events));
  }

  size_t Run() {
    FindLastAccesses();
    size_t most = 0;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      Advance(i);
      size_t held = 0;
      for (const Bucket& bucket : buckets_) {
        if (bucket.first <= i && !IsOver(bucket)) held += bucket.bytes;
      }
      most = std::max(most, held);
    }
    return most;
  }

 private:
  using Clock = std::array<size_t, 8>;  // by stream: steps that are over, counted as index in the plan + 1
  struct Bucket {
    const Value* value = nullptr;
    size_t bytes = 0;
    size_t first = SIZE_MAX;  // step
    Clock last = {};          // by stream
  };

  void AddBucket(const PlacedValue& placed) {
    if (placed.placement.region != Region::kTransient || placed.placement.bytes == 0) return;
    Bucket bucket;
    bucket.value = placed.value;
    bucket.bytes = placed.placement.bytes;
    bucket_of_[placed.value] = buckets_.size();
    buckets_.push_back(bucket);
  }

  // The bucket in which a value lies: itself, a part of it, or what was reduced in place.
  void MapValues() {
    for (size_t b = 0; b < buckets_.size(); ++b) {
      for (const Value* part : buckets_[b].value->producer()->inputs()) Join(part, b);
    }
    for (const Node* node : nodes_) {
      if (!node->def().aliases) continue;
      for (const AliasRule& rule : node->def().aliases(*node)) {
        const Value* in = node->input(static_cast<size_t>(rule.input));
        const Value* out = node->output(static_cast<size_t>(rule.output));
        if (rule.kind == AliasRule::Kind::kPack || in == nullptr || out == nullptr) continue;
        const auto bucket = bucket_of_.find(in);
        if (bucket != bucket_of_.end()) Join(out, bucket->second);
      }
    }
  }

  void Join(const Value* value, size_t bucket) {
    const Placement& whole = places_.at(buckets_[bucket].value);
    const Placement& part = places_.at(value);
    const bool inside = part.region == whole.region && part.offset >= whole.offset &&
                        part.offset + part.bytes <= whole.offset + whole.bytes;
    if (inside) bucket_of_.emplace(value, bucket);
  }

  void FindLastAccesses() {
    MapValues();
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const PlanStep& step = plan_.steps[i];
      if (step.kind != StepKind::kLaunch) continue;
      const Node* node = nodes_[static_cast<size_t>(step.node)];
      for (const std::vector<Value*>* values : {&node->inputs(), &node->outputs()}) {
        for (const Value* value : *values) {
          const auto found = bucket_of_.find(value);
          if (found == bucket_of_.end()) continue;
          Bucket& bucket = buckets_[found->second];
          bucket.first = std::min(bucket.first, i);
          bucket.last[static_cast<size_t>(step.stream)] = i + 1;
        }
      }
    }
  }

  void Advance(size_t index) {
    const PlanStep& step = plan_.steps[index];
    Clock& clock = clocks_[static_cast<size_t>(step.stream)];
    if (step.kind == StepKind::kRecord) events_[static_cast<size_t>(step.event)] = clock;
    if (step.kind == StepKind::kWait) {
      const Clock& event = events_[static_cast<size_t>(step.event)];
      for (size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], event[s]);
    }
    clock[static_cast<size_t>(step.stream)] = index + 1;
  }

  bool IsOver(const Bucket& bucket) const {
    for (size_t s = 0; s < bucket.last.size(); ++s) {
      if (bucket.last[s] > clocks_[0][s]) return false;
    }
    return true;
  }

  const ExecutionPlan& plan_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Value*, Placement> places_;
  std::vector<Bucket> buckets_;
  std::unordered_map<const Value*, size_t> bucket_of_;
  std::vector<Clock> clocks_;
  std::vector<Clock> events_;
};

std::string Padded(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

}  // namespace

bool MemoryReport::FormulasHold() const {
  return std::all_of(lines.begin(), lines.end(), [](const MemoryLine& line) {
    return line.formula.empty() || line.bytes == line.expected || (line.at_most && line.bytes < line.expected);
  });
}

size_t BucketsInFlight(const Graph& graph, const ExecutionPlan& plan) { return FlightCount(graph, plan).Run(); }

MemoryReport ReportMemory(const Program& program, const PersistentPlacements& persistent, const Graph& graph,
                          const ExecutionPlan& plan, int stage) {
  MemoryReport report;
  AddFormulaLines(program, stage, report.lines);
  report.lines.push_back({"frozen", BytesOf(program, StateClass::kFrozen), "", 0});
  report.lines.push_back({"buffers", BytesOf(program, StateClass::kBuffer), "", 0});
  report.lines.push_back({"counters", BytesOf(program, StateClass::kCounter), "", 0});
  report.lines.push_back({"constants", BytesOfConstants(persistent), "", 0});
  if (!program.layout().empty()) {
    const size_t padded = SizesOf(program).padded;
    const size_t packed = BytesOfPackedBuckets(program, graph);
    const size_t expected = packed == 0 ? padded : packed;  // a graph without gradients packs none
    const bool bound = stage == 2 || plan.streams.size() == 1;
    const std::string formula = expected == padded ? "P+padding" : "(P+padding)/2";
    report.lines.push_back({"in-flight buckets", BucketsInFlight(graph, plan), (bound ? "at most " : "") + formula,
                            expected, bound});
  }
  report.persistent_bytes = persistent.bytes;
  report.transient_bytes = plan.transient_bytes;
  report.transient_lower_bound = plan.transient_lower_bound;
  report.padding = program.layout().padding_fraction();
  return report;
}

std::string ToString(const MemoryReport& report) {
  std::string text;
  for (const MemoryLine& line : report.lines) {
    if (line.bytes == 0 && line.formula.empty()) continue;
    text += Padded(line.name, 20) + Padded(std::to_string(line.bytes), 14);
    if (!line.formula.empty())
      text += (line.at_most ? "" : "= ") + line.formula + " = " + std::to_string(line.expected);
    while (text.back() == ' ') text.pop_back();
    text += "\n";
  }
  char padding[32];
  std::snprintf(padding, sizeof padding, "%.3f %%", 100 * report.padding);
  text += Padded("persistent region", 20) + std::to_string(report.persistent_bytes) + "\n";
  text += Padded("transient region", 20) + Padded(std::to_string(report.transient_bytes), 14) + "least possible " +
          std::to_string(report.transient_lower_bound) + "\n";
  text += Padded("bucket padding", 20) + padding + "\n";
  return text;
}

}  // namespace onnxtrain
