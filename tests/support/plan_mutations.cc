// SPDX-License-Identifier: Apache-2.0
#include "tests/support/plan_mutations.h"

#include <algorithm>
#include <map>

namespace onnxtrain {
namespace {

std::vector<BrokenPlan> WithoutEach(const ExecutionPlan& plan, StepKind kind, const std::string& what) {
  std::vector<BrokenPlan> broken;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind != kind) continue;
    broken.push_back({"no " + what + " at step " + std::to_string(i), plan});
    broken.back().plan.steps.erase(broken.back().plan.steps.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return broken;
}

class PlanView {
 public:
  PlanView(const ExecutionPlan& plan, const Graph& graph) : plan_(plan) {
    for (const std::unique_ptr<Node>& node : graph.nodes()) nodes_.push_back(node.get());
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      if (plan.steps[i].kind != StepKind::kLaunch) continue;
      const Node* node = NodeOf(i);
      step_of_[node] = i;
      for (const Value* input : node->inputs()) {
        if (input != nullptr) last_read_[input] = i;
      }
    }
  }
  const Node* NodeOf(size_t step) const { return nodes_[static_cast<size_t>(plan_.steps[step].node)]; }
  const Placement& Place(const Value* value) const { return *plan_.Find(value); }
  const std::map<const Node*, size_t>& launches() const { return step_of_; }
  // Step of the last launch that reads the value; 0 where there is none.
  size_t LastRead(const Value* value) const {
    const auto found = last_read_.find(value);
    return found == last_read_.end() ? 0 : found->second;
  }
  // Its launch writes all of it: no view, no bucket, not empty.
  bool IsWritten(const Value* value) const {
    if (value->producer() == nullptr || value->type().bytes() == 0) return false;
    const auto step = step_of_.find(value->producer());
    const std::string& op = value->producer()->op();
    return step != step_of_.end() && op != "Reshape" && op.find("Bucket") == std::string::npos;
  }

 private:
  const ExecutionPlan& plan_;
  std::vector<const Node*> nodes_;
  std::map<const Node*, size_t> step_of_;
  std::map<const Value*, size_t> last_read_;
};

ExecutionPlan Moved(const ExecutionPlan& plan, const Value* value, Placement to) {
  ExecutionPlan moved = plan;
  for (PlacedValue& placed : moved.placements) {
    if (placed.value != value) continue;
    to.bytes = placed.placement.bytes;
    placed.placement = to;
  }
  return moved;
}

bool Disjoint(const Placement& a, const Placement& b) {
  return a.region != b.region || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
}

// The zero fill that is missing from `broken` may write what an earlier one left: then nothing is broken.
bool MayBeZeroAnyway(const ExecutionPlan& plan, const ExecutionPlan& broken) {
  size_t missing = 0;
  while (missing < broken.steps.size() && plan.steps[missing].kind == broken.steps[missing].kind &&
         plan.steps[missing].range == broken.steps[missing].range) {
    ++missing;
  }
  return std::any_of(plan.steps.begin(), plan.steps.begin() + static_cast<std::ptrdiff_t>(missing),
                     [&](const PlanStep& step) {
                       return step.kind == StepKind::kZeroFill && !Disjoint(step.range, plan.steps[missing].range);
                     });
}

// `value` moved onto `victim`, where that is possible and changes something.
void AddMove(const ExecutionPlan& plan, const PlanView& view, const Value* value, const Value* victim,
             std::vector<BrokenPlan>& broken) {
  const Placement& onto = view.Place(victim);
  if (onto.region != Region::kTransient || onto.bytes == 0 || !Disjoint(onto, view.Place(value))) return;
  if (onto.offset + value->type().bytes() > plan.transient_bytes) return;
  broken.push_back({"'" + value->name() + "' on '" + victim->name() + "'", Moved(plan, value, onto)});
}

}  // namespace

std::vector<BrokenPlan> WithoutEachWait(const ExecutionPlan& plan) {
  return WithoutEach(plan, StepKind::kWait, "wait");
}

std::vector<BrokenPlan> WithoutEachZeroFill(const ExecutionPlan& plan) {
  std::vector<BrokenPlan> broken;
  for (BrokenPlan& candidate : WithoutEach(plan, StepKind::kZeroFill, "zero fill")) {
    if (!MayBeZeroAnyway(plan, candidate.plan)) broken.push_back(std::move(candidate));
  }
  return broken;
}

std::vector<BrokenPlan> WithSwappedLaunches(const ExecutionPlan& plan, const Graph& graph) {
  const PlanView view(plan, graph);
  std::vector<BrokenPlan> broken;
  for (const auto& [node, step] : view.launches()) {
    for (const Value* input : node->inputs()) {
      if (input == nullptr || !view.IsWritten(input)) continue;
      const size_t earlier = view.launches().at(input->producer());
      if (plan.steps[earlier].stream != plan.steps[step].stream) continue;
      // A part that lies in its bucket already is not touched by the launch that packs.
      if (node->op() == "onnxtrain.BucketPack" && !Disjoint(view.Place(input), view.Place(node->output(0)))) continue;
      broken.push_back({"steps " + std::to_string(earlier) + " and " + std::to_string(step) + " swapped", plan});
      std::swap(broken.back().plan.steps[earlier], broken.back().plan.steps[step]);
    }
  }
  return broken;
}

std::vector<BrokenPlan> WithOverlaps(const ExecutionPlan& plan, const Graph& graph) {
  const PlanView view(plan, graph);
  std::vector<BrokenPlan> broken;
  for (const auto& [node, step] : view.launches()) {
    for (const Value* output : node->outputs()) {
      if (output == nullptr || !view.IsWritten(output)) continue;
      for (const Value* input : node->inputs()) {
        const bool same_size = input != nullptr && input->type().bytes() == output->type().bytes();
        if (input != nullptr && !same_size) AddMove(plan, view, output, input, broken);
      }
      for (const PlacedValue& placed : plan.placements) {  // written before, read after
        const Value* victim = placed.value;
        if (!view.IsWritten(victim) || view.launches().at(victim->producer()) >= step) continue;
        if (view.LastRead(victim) > step) AddMove(plan, view, output, victim, broken);
      }
    }
  }
  return broken;
}

std::vector<BrokenPlan> WithLostUpdates(const ExecutionPlan& plan, const Graph& graph) {
  std::vector<BrokenPlan> broken;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (step.kind != StepKind::kCopy || step.range.bytes == 0) continue;
    broken.push_back({"no copy at step " + std::to_string(i), plan});
    broken.back().plan.steps.erase(broken.back().plan.steps.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (const Value* state : graph.states()) {
    const Value* update = state->update();
    if (update == nullptr || update->type().bytes() == 0 || *plan.Find(update) != *plan.Find(state)) continue;
    if (update->kind() != ValueKind::kIntermediate) continue;
    ExecutionPlan moved = Moved(plan, update, {Region::kTransient, plan.transient_bytes, 0});
    moved.transient_bytes += update->type().bytes();
    broken.push_back({"'" + update->name() + "' outside its state", std::move(moved)});
  }
  return broken;
}

}  // namespace onnxtrain
