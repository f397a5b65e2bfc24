// SPDX-License-Identifier: Apache-2.0
#include "tests/support/symbolic_machine.h"

#include <cstring>

#include "graph/digest.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

// `count` bytes that depend on every bit of the seed.
std::vector<std::byte> BytesOf(uint64_t seed, size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = static_cast<std::byte>(seed >> 56);
  }
  return bytes;
}

std::string_view TextOf(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

SymbolicMachine::SymbolicMachine(const Graph& graph, const ExecutionPlan& plan) : graph_(graph), plan_(plan) {
  for (const std::unique_ptr<Node>& node : graph.nodes()) nodes_.push_back(node.get());
  for (const PlacedValue& placed : plan.placements) places_[placed.value] = placed.placement;
  regions_[0] = BytesOf(1, plan.persistent_bytes);
  regions_[1] = BytesOf(2, plan.transient_bytes);
  for (const Value* state : graph.states()) {
    Write(places_.at(state), BytesOf(Fnv1a(state->name()), places_.at(state).bytes));
  }
  for (const Value* constant : graph.constants()) {
    if (constant->type().bytes() != 0) {
      std::memcpy(At(places_.at(constant)), constant->constant()->data(), constant->type().bytes());
    }
  }
}

std::byte* SymbolicMachine::At(const Placement& place) {
  return regions_[static_cast<size_t>(place.region)].data() + place.offset;
}
const std::byte* SymbolicMachine::At(const Placement& place) const {
  return regions_[static_cast<size_t>(place.region)].data() + place.offset;
}

SymbolicMachine::Bytes SymbolicMachine::Read(const Placement& place) const {
  return Bytes(At(place), At(place) + place.bytes);
}

void SymbolicMachine::Write(const Placement& place, const Bytes& bytes) {
  CHECK(bytes.size() == place.bytes);
  if (!bytes.empty()) std::memcpy(At(place), bytes.data(), bytes.size());
}

void SymbolicMachine::Run(const std::vector<size_t>& order) {
  for (size_t step : order) RunStep(plan_.steps[step]);
}

void SymbolicMachine::RunStep(const PlanStep& step) {
  switch (step.kind) {
    case StepKind::kFeed: {
      const std::string& name = graph_.inputs()[static_cast<size_t>(step.value)]->name();
      return Write(step.target, BytesOf(Fnv1a("feed " + name), step.target.bytes));
    }
    case StepKind::kFetch:
      fetched_["fetched " + graph_.outputs()[static_cast<size_t>(step.value)]->name()] = Read(step.range);
      return;
    case StepKind::kZeroFill:
      return Write(step.range, Bytes(step.range.bytes));
    case StepKind::kCopy:
      return Write(step.target, Read(step.range));
    case StepKind::kLaunch:
      return Launch(step.node);
    case StepKind::kRecord:
    case StepKind::kWait:
      return;
  }
}

void SymbolicMachine::Launch(int index) {
  const Node& node = *nodes_[static_cast<size_t>(index)];
  const bool moves =
      node.op() == "onnxtrain.BucketPack" || node.op() == "onnxtrain.BucketUnpack" || node.op() == "Reshape";
  if (moves) {
    for (const AliasRule& rule : node.def().aliases(node)) {
      const Placement& in = places_.at(node.input(static_cast<size_t>(rule.input)));
      const Placement& out = places_.at(node.output(static_cast<size_t>(rule.output)));
      const size_t offset = static_cast<size_t>(rule.offset);
      const Placement from{in.region, in.offset + (rule.kind == AliasRule::Kind::kView ? offset : 0),
                           std::min(in.bytes, out.bytes)};
      const Placement to{out.region, out.offset + (rule.kind == AliasRule::Kind::kPack ? offset : 0), from.bytes};
      Write(to, Read(from));
    }
    return;
  }
  uint64_t seen = Fnv1a(node.output(0)->name());
  for (const Value* input : node.inputs()) seen = Fnv1a(TextOf(Read(places_.at(input))), seen);
  const Placement& workspace = plan_.workspaces[static_cast<size_t>(index)];
  Write(workspace, BytesOf(seen, workspace.bytes));
  for (const Value* output : node.outputs()) {
    seen = Fnv1a(output->name(), seen);
    Write(places_.at(output), BytesOf(seen, places_.at(output).bytes));
  }
}

std::map<std::string, std::vector<std::byte>> SymbolicMachine::Results() const {
  std::map<std::string, Bytes> results = fetched_;
  for (const Value* state : graph_.states()) results["state " + state->name()] = Read(places_.at(state));
  return results;
}

}  // namespace onnxtrain
