// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_verifier.h"

#include <map>
#include <memory>

#include "runtime/plan_replay.h"

namespace onnxtrain {
namespace {

Status AsStatus(const std::vector<std::string>& violations) {
  constexpr size_t kShown = 5;
  if (violations.empty()) return OkStatus();
  std::string message = "the plan verifier found " + std::to_string(violations.size()) + " violation(s):";
  for (size_t i = 0; i < violations.size() && i < kShown; ++i) message += "\n  " + violations[i];
  return InternalError(message);
}

struct PersistentOwner {
  std::string name;  // "" for a constant
  const Value* value = nullptr;
  Placement place;
};

bool MayShare(const PersistentOwner& a, const PersistentOwner& b) {
  if (a.place != b.place) return false;
  if (!a.name.empty() || !b.name.empty()) return a.name == b.name;
  return a.value->constant()->Identical(*b.value->constant());
}

// One place per state in all plans; nothing else there, but for equal constants.
class PersistentCheck {
 public:
  explicit PersistentCheck(Violations& violations) : violations_(violations) {}

  void Add(const SessionPlan& subject) {
    std::map<const Value*, const Placement*> places;
    for (const PlacedValue& placed : subject.plan->placements) places[placed.value] = &placed.placement;
    for (const Value* state : subject.graph->states()) Add({state->name(), state, *places.at(state)}, *subject.graph);
    for (const Value* constant : subject.graph->constants()) Add({"", constant, *places.at(constant)}, *subject.graph);
  }

 private:
  void Add(const PersistentOwner& owner, const Graph& graph) {
    if (!owner.name.empty()) {
      const auto [known, fresh] = states_.emplace(owner.name, owner.place);
      if (!fresh && known->second != owner.place) Complain(owner, graph, "has another place in an earlier plan");
    }
    if (owner.place.bytes == 0) return;
    auto next = owners_.lower_bound(owner.place.offset + owner.place.bytes);
    while (next != owners_.begin()) {
      const PersistentOwner& other = (--next)->second;
      if (other.place.offset + other.place.bytes <= owner.place.offset) break;
      if (!MayShare(owner, other)) Complain(owner, graph, "overlaps '" + other.value->name() + "'");
    }
    owners_.emplace(owner.place.offset, owner);
  }

  void Complain(const PersistentOwner& owner, const Graph& graph, const std::string& problem) {
    violations_.Add("plan of graph '" + graph.name() + "': '" + owner.value->name() + "' at persistent bytes [" +
                    std::to_string(owner.place.offset) + ", +" + std::to_string(owner.place.bytes) + ") " + problem);
  }

  Violations& violations_;
  std::map<std::string, Placement> states_;
  std::map<size_t, PersistentOwner> owners_;  // by offset
};

}  // namespace

std::vector<std::string> FindSessionViolations(std::span<const SessionPlan> plans, const PlanVerifierOptions& options) {
  Violations violations;
  std::vector<std::unique_ptr<PlanReplay>> replays;
  const PlanReplay::Namer namer = [&](int64_t label) {
    const size_t plan = static_cast<size_t>(PlanReplay::PlanOf(label));
    return (plans.size() > 1 ? "plan of '" + plans[plan].graph->name() + "' " : "") + replays[plan]->Name(label);
  };
  for (size_t i = 0; i < plans.size(); ++i) {
    replays.push_back(std::make_unique<PlanReplay>(plans[i], static_cast<int>(i), namer, violations));
  }
  for (std::unique_ptr<PlanReplay>& replay : replays) {
    if (!replay->CheckForm(options)) return violations.sentences();
  }
  PersistentCheck persistent(violations);
  for (const SessionPlan& plan : plans) persistent.Add(plan);
  // One walk over the plans that takes every ordered pair, a plan and itself included.
  ReplayState state;
  for (size_t i = 0; i < replays.size(); ++i) {
    replays[i]->Run(state);
    for (size_t j = i + 1; j < replays.size(); ++j) {
      replays[i]->Run(state);
      replays[j]->Run(state);
    }
    replays[i]->Run(state);
  }
  return violations.sentences();
}

Status VerifySession(std::span<const SessionPlan> plans, const PlanVerifierOptions& options) {
  return AsStatus(FindSessionViolations(plans, options));
}

std::vector<std::string> FindViolations(const Graph& graph, const ExecutionPlan& plan,
                                        const PlanVerifierOptions& options) {
  const SessionPlan one{&graph, &plan};
  return FindSessionViolations({&one, 1}, options);
}

Status VerifyPlan(const Graph& graph, const ExecutionPlan& plan, const PlanVerifierOptions& options) {
  return AsStatus(FindViolations(graph, plan, options));
}

}  // namespace onnxtrain
