// SPDX-License-Identifier: Apache-2.0
// The least exposed time of simulator.h. Compute steps are walked in the order of the plan; each may begin at the
// earliest when the link, serving pieces of data as soon as they exist, has carried all that this or an earlier step
// needs:
//   begin >= max over k of  exists(k) + latency(k) + sum of time(j) over needed pieces j that exist no earlier than k
// where latency(k) is that of the collective which carries k, in whatever bucket: it begins when k exists at the
// earliest, and none of the pieces j has been carried before.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "graph/op_registry.h"
#include "runtime/simulator.h"

namespace onnxtrain {
namespace {

// Something the link carries: a gradient inside a bucket, or a whole collective.
struct Piece {
  double exists_us = 0;
  double time_us = 0;
  double latency_us = 0;
};

class BoundWalk {
 public:
  BoundWalk(const ExecutionPlan& plan, const Graph& graph, const SimulationCosts& costs)
      : plan_(plan), graph_(graph), costs_(costs) {
    for (const std::unique_ptr<Node>& node : graph.nodes()) nodes_.push_back(node.get());
    for (const PlacedValue& placed : plan.placements) places_[placed.value] = placed.placement;
    for (const PlanStep& step : plan.steps) {
      if (step.kind == StepKind::kLaunch) launched_.insert(nodes_[static_cast<size_t>(step.node)]);
    }
  }

  double Run() {
    double compute = 0;
    for (const PlanStep& step : plan_.steps) {
      if (step.stream != 0 || step.kind == StepKind::kRecord || step.kind == StepKind::kWait) continue;
      if (step.kind == StepKind::kLaunch && nodes_[static_cast<size_t>(step.node)]->def().collective) continue;
      for (const Value* value : Inputs(step)) Require(value);
      const double duration = StepMicroseconds(step, nodes_, costs_);
      compute += duration;
      now_ = std::max(now_, LinkFreeOfNeeded()) + duration;
      if (step.kind != StepKind::kLaunch) continue;
      const Node* node = nodes_[static_cast<size_t>(step.node)];
      for (const Value* output : node->outputs()) exists_[output] = std::max(now_, PartsExistAt(node));
    }
    for (const Node* node : nodes_) {  // a run ends after all of its collectives
      if (node->def().collective) RequireCollective(node);
    }
    return std::max(0.0, std::max(now_, LinkFreeOfNeeded()) - compute);
  }

 private:
  std::vector<const Value*> Inputs(const PlanStep& step) const {
    if (step.kind == StepKind::kFetch) return {graph_.outputs()[static_cast<size_t>(step.value)]};
    if (step.kind != StepKind::kLaunch) return {};
    const Node* node = nodes_[static_cast<size_t>(step.node)];
    std::vector<const Value*> inputs;
    for (const Value* input : node->inputs()) {
      if (!IsInsideBucket(node, input)) inputs.push_back(input);
    }
    return inputs;
  }

  // The launch that packs does not touch a part that was written into the bucket by its producer.
  bool IsInsideBucket(const Node* node, const Value* part) const {
    if (node->op() != "onnxtrain.BucketPack") return false;
    const Placement& bucket = places_.at(node->output(0));
    const Placement& place = places_.at(part);
    return place.region == bucket.region && place.offset >= bucket.offset &&
           place.offset + place.bytes <= bucket.offset + bucket.bytes;
  }

  double PartsExistAt(const Node* node) {
    double at = 0;
    for (const Value* input : node->inputs()) {
      if (IsInsideBucket(node, input)) at = std::max(at, ExistsAt(input));
    }
    return at;
  }

  bool IsElided(const Node* node) const { return launched_.count(node) == 0; }

  // All collectives behind the value are needed from now on. Nothing waits for an empty value.
  void Require(const Value* value) {
    if (value == nullptr || value->producer() == nullptr || value->type().bytes() == 0) return;
    const Node* producer = value->producer();
    if (producer->def().collective) return RequireCollective(producer);
    for (const Value* input : producer->inputs()) {
      if (IsElided(producer) || IsInsideBucket(producer, input)) Require(input);
    }
  }

  void RequireCollective(const Node* node) {
    if (!required_.insert(node).second) return;
    for (const Value* input : node->inputs()) Require(input);
    for (const Piece& piece : PiecesOf(node)) needed_.push_back(piece);
    changed_ = true;
  }

  // When the bytes of a value are there, at the earliest.
  double ExistsAt(const Value* value) {
    if (value != nullptr && value->type().bytes() == 0) return 0;
    const auto known = exists_.find(value);
    if (known != exists_.end() || value == nullptr || value->producer() == nullptr) {
      return known == exists_.end() ? 0 : known->second;
    }
    const Node* producer = value->producer();
    double at = 0;
    for (const Value* input : producer->inputs()) at = std::max(at, ExistsAt(input));
    if (producer->def().collective) at += costs_.latency_us(*producer);
    return exists_[value] = at;
  }

  std::vector<Piece> PiecesOf(const Node* node) {
    const Value* sent = node->input(0);
    const double latency = costs_.latency_us(*node);
    const double transfer = costs_.node_us(*node) - latency;
    const Node* pack = sent->producer();
    if (pack == nullptr || !IsElided(pack) || pack->inputs().size() < 2 || sent->type().bytes() == 0) {
      return {{ExistsAt(sent), transfer, latency}};
    }
    std::vector<Piece> pieces;
    for (const Value* part : pack->inputs()) {
      const double share = static_cast<double>(part->type().bytes()) / static_cast<double>(sent->type().bytes());
      pieces.push_back({ExistsAt(part), transfer * share, latency});
    }
    return pieces;
  }

  double LinkFreeOfNeeded() {
    if (!changed_) return link_free_;
    changed_ = false;
    std::stable_sort(needed_.begin(), needed_.end(), [](auto& a, auto& b) { return a.exists_us > b.exists_us; });
    double later = 0;
    for (const Piece& piece : needed_) {
      later += piece.time_us;
      link_free_ = std::max(link_free_, piece.exists_us + piece.latency_us + later);
    }
    return link_free_;
  }

  const ExecutionPlan& plan_;
  const Graph& graph_;
  const SimulationCosts& costs_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Value*, Placement> places_;
  std::set<const Node*> launched_;
  std::unordered_map<const Value*, double> exists_;
  std::set<const Node*> required_;
  std::vector<Piece> needed_;
  bool changed_ = false;
  double link_free_ = 0;
  double now_ = 0;
};

}  // namespace

double ExposedBound(const ExecutionPlan& plan, const Graph& graph, const SimulationCosts& costs) {
  return BoundWalk(plan, graph, costs).Run();
}

}  // namespace onnxtrain
