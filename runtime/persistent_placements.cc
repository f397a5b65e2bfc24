// SPDX-License-Identifier: Apache-2.0
#include "runtime/persistent_placements.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace onnxtrain {
namespace {

constexpr size_t kAlignment = 256;

class Region256 {
 public:
  explicit Region256(PersistentPlacements& placements) : placements_(placements) {}

  void AddState(const std::string& name, size_t bytes) { placements_.states.emplace_back(name, Take(bytes)); }

  void AddConstants(const Graph& graph) {
    for (const Value* value : graph.constants()) AddConstant(*value);
  }

 private:
  Placement Take(size_t bytes) {
    const Placement placement{Region::kPersistent, placements_.bytes, bytes};
    placements_.bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return placement;
  }

  void AddConstant(const Value& value) {
    const Tensor& tensor = *value.constant();
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
    std::vector<size_t>& twins = by_hash_[std::hash<std::string_view>()(bytes)];
    for (size_t twin : twins) {
      const auto& [other, placement] = placements_.constants[twin];
      if (other->constant()->Identical(tensor)) {
        placements_.constants.emplace_back(&value, Placement(placement));
        return;
      }
    }
    twins.push_back(placements_.constants.size());
    placements_.constants.emplace_back(&value, Take(tensor.bytes()));
  }

  PersistentPlacements& placements_;
  std::unordered_map<size_t, std::vector<size_t>> by_hash_;  // looked up only: its order decides nothing
};

}  // namespace

PersistentPlacements PlacePersistent(const Program& program) {
  PersistentPlacements placements;
  Region256 region(placements);
  for (const StateEntry& state : program.states()) region.AddState(state.name, state.type.bytes());
  for (const auto& [name, graph] : program.graphs()) region.AddConstants(graph);
  return placements;
}

PersistentPlacements PlacePersistent(const Graph& graph) {
  PersistentPlacements placements;
  Region256 region(placements);
  for (const Value* state : graph.states()) region.AddState(state->name(), state->type().bytes());
  region.AddConstants(graph);
  return placements;
}

const Placement* PersistentPlacements::FindState(const std::string& name) const {
  const auto found = std::find_if(states.begin(), states.end(), [&](const auto& entry) { return entry.first == name; });
  return found == states.end() ? nullptr : &found->second;
}

const Placement* PersistentPlacements::FindConstant(const Value* value) const {
  const auto found =
      std::find_if(constants.begin(), constants.end(), [&](const auto& entry) { return entry.first == value; });
  return found == constants.end() ? nullptr : &found->second;
}

}  // namespace onnxtrain
