// SPDX-License-Identifier: Apache-2.0
// What a plan must be before a replay means anything: see plan_replay.h, CheckForm.
#include <algorithm>

#include "graph/op_registry.h"
#include "runtime/plan_replay.h"

namespace onnxtrain {
namespace {

template <typename Container>
bool IsIndex(int index, const Container& container) {
  return index >= 0 && static_cast<size_t>(index) < container.size();
}

}  // namespace

bool PlanReplay::CheckForm(const PlanVerifierOptions& options) {
  if (plan_.streams.empty() || plan_.streams.size() > kLedgerStreams) {
    Complain("has " + std::to_string(plan_.streams.size()) + " streams; 1 to " + std::to_string(kLedgerStreams) +
             " are possible");
    return false;
  }
  const size_t bytes = plan_.persistent_bytes + plan_.transient_bytes;
  if (options.memory_limit != 0 && bytes > options.memory_limit) {
    Complain("needs " + std::to_string(bytes) + " bytes, the memory limit is " + std::to_string(options.memory_limit));
  }
  if (plan_.workspaces.size() != nodes_.size()) {
    Complain("has " + std::to_string(plan_.workspaces.size()) + " workspaces for " + std::to_string(nodes_.size()) +
             " nodes");
    return false;
  }
  const bool places = CheckPlaces();
  const bool steps = CheckSteps();
  if (!places || !steps) return false;
  CheckWorkspaces(options);
  CheckCollectives();
  return true;
}

bool PlanReplay::CheckRange(const std::string& what, const Placement& range) {
  const size_t limit = range.region == Region::kPersistent ? plan_.persistent_bytes : plan_.transient_bytes;
  if (range.offset <= limit && range.bytes <= limit - range.offset) return true;
  Complain(what + " lies at [" + std::to_string(range.offset) + ", +" + std::to_string(range.bytes) +
           "), the region has " + std::to_string(limit) + " bytes");
  return false;
}

bool PlanReplay::CheckPlaces() {
  std::unordered_map<const Value*, const Placement*> places;
  for (const PlacedValue& placed : plan_.placements) places[placed.value] = &placed.placement;
  bool good = true;
  const auto check = [&](const Value* value, bool persistent) {
    const auto found = places.find(value);
    const std::string name = "'" + value->name() + "'";
    if (found == places.end()) {
      Complain("gives no place to " + name);
      good = false;
      return;
    }
    const Placement& place = *found->second;
    good = CheckRange(name, place) && good;
    if (place.bytes != value->type().bytes() || place.offset % std::max<size_t>(1, SizeOf(value->type().dtype)) != 0) {
      Complain("gives " + name + " of type " + ToString(value->type()) + " " + std::to_string(place.bytes) +
               " bytes at offset " + std::to_string(place.offset));
      good = false;
    }
    if (persistent && place.region != Region::kPersistent) {
      Complain("places " + name + ", which outlives the run, in the transient region");
      good = false;
    }
  };
  for (const Value* state : graph_.states()) check(state, true);
  for (const Value* constant : graph_.constants()) check(constant, true);
  for (const Value* input : graph_.inputs()) check(input, false);
  for (const Node* node : nodes_) {
    for (const Value* output : node->outputs()) {
      if (output != nullptr) check(output, false);
    }
  }
  return good;
}

bool PlanReplay::CheckSteps() {
  std::vector<bool> recorded(static_cast<size_t>(std::max(plan_.events, 0)), false);
  std::vector<int> launches(nodes_.size(), 0);
  std::vector<int> feeds(graph_.inputs().size(), 0);
  std::vector<int> fetches(graph_.outputs().size(), 0);
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    if (!CheckStep(i, recorded)) return false;
    const PlanStep& step = plan_.steps[i];
    if (step.kind == StepKind::kLaunch) ++launches[static_cast<size_t>(step.node)];
    if (step.kind == StepKind::kFeed) ++feeds[static_cast<size_t>(step.value)];
    if (step.kind == StepKind::kFetch) ++fetches[static_cast<size_t>(step.value)];
  }
  std::vector<bool> launched;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    launched.push_back(launches[i] != 0);
    if (launches[i] > 1) Complain("launches " + nodes_[i]->Describe() + " " + std::to_string(launches[i]) + " times");
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (feeds[i] != 1) Complain("feeds '" + graph_.inputs()[i]->name() + "' " + std::to_string(feeds[i]) + " times");
  }
  for (size_t i = 0; i < fetches.size(); ++i) {
    if (fetches[i] != 1)
      Complain("fetches '" + graph_.outputs()[i]->name() + "' " + std::to_string(fetches[i]) + " times");
  }
  const auto complain = [this](const std::string& problem) { Complain(problem); };
  expected_ = std::make_unique<ExpectedContent>(graph_, plan_, launched, complain);
  return true;
}

// Of one step alone: its indices and ranges, and that what it waits for has been recorded.
bool PlanReplay::CheckStep(size_t index, std::vector<bool>& recorded) {
  const PlanStep& step = plan_.steps[index];
  const std::string place = "step " + std::to_string(index);
  const auto refuse = [&](const std::string& problem) {
    Complain(place + " " + problem);
    return false;
  };
  if (!IsIndex(step.stream, plan_.streams)) return refuse("is on stream " + std::to_string(step.stream));
  switch (step.kind) {
    case StepKind::kLaunch:
      if (!IsIndex(step.node, nodes_)) return refuse("launches node " + std::to_string(step.node));
      return true;
    case StepKind::kFeed: {
      if (!IsIndex(step.value, graph_.inputs())) return refuse("feeds input " + std::to_string(step.value));
      const Placement* input = nullptr;
      for (const PlacedValue& placed : plan_.placements) {
        if (placed.value == graph_.inputs()[static_cast<size_t>(step.value)]) input = &placed.placement;
      }
      return input != nullptr && step.target == *input ? true : refuse("feeds a place that is not its input's");
    }
    case StepKind::kFetch: {
      if (!IsIndex(step.value, graph_.outputs())) return refuse("fetches output " + std::to_string(step.value));
      const Value* output = graph_.outputs()[static_cast<size_t>(step.value)];
      const bool fits = step.range.bytes == output->type().bytes();
      return CheckRange(place, step.range) && (fits || refuse("fetches a range of another size than its output"));
    }
    case StepKind::kZeroFill:
      return CheckRange(place, step.range);
    case StepKind::kCopy:
      if (step.range.bytes != step.target.bytes) return refuse("copies between ranges of different sizes");
      return CheckRange(place, step.range) && CheckRange(place, step.target);
    case StepKind::kRecord:
    case StepKind::kWait:
      break;
  }
  if (!IsIndex(step.event, recorded)) return refuse("names event " + std::to_string(step.event));
  const size_t event = static_cast<size_t>(step.event);
  const bool records = step.kind == StepKind::kRecord;
  if (records == recorded[event]) {
    return refuse((records ? "records event again: " : "waits for an event not yet recorded: ") +
                  std::to_string(event));
  }
  recorded[event] = true;
  return true;
}

void PlanReplay::CheckCollectives() {
  int stream = -1;
  int last = -1;
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const PlanStep& step = plan_.steps[i];
    if (step.kind != StepKind::kLaunch || !node(step.node).def().collective) continue;
    if (stream >= 0 && step.stream != stream) {
      Complain(NameOfStep(i) + " is a collective on another stream than those before it ('" +
               plan_.streams[static_cast<size_t>(stream)] + "')");
    }
    if (step.node < last) {
      Complain(NameOfStep(i) + " comes after " + node(last).Describe() +
               ", which follows it in the graph: ranks would issue collectives in different orders");
    }
    stream = step.stream;
    last = step.node;
  }
}

void PlanReplay::CheckWorkspaces(const PlanVerifierOptions& options) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    CheckRange("the workspace of " + nodes_[i]->Describe(), plan_.workspaces[i]);
    if (!options.workspace_bytes) continue;
    const size_t needed = options.workspace_bytes(*nodes_[i], static_cast<int>(i));
    const bool launched = std::any_of(plan_.steps.begin(), plan_.steps.end(), [&](const PlanStep& step) {
      return step.kind == StepKind::kLaunch && static_cast<size_t>(step.node) == i;
    });
    if (launched && plan_.workspaces[i].bytes < needed) {
      Complain(nodes_[i]->Describe() + " has a workspace of " + std::to_string(plan_.workspaces[i].bytes) +
               " bytes, its kernel uses " + std::to_string(needed));
    }
  }
}

}  // namespace onnxtrain
