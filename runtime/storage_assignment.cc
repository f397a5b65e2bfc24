// SPDX-License-Identifier: Apache-2.0
#include "runtime/storage_assignment.h"

#include <algorithm>

namespace onnxtrain {
namespace {

using Kind = AliasRule::Kind;

bool Overlap(const StorageRange& a, const StorageRange& b) {
  return a.storage == b.storage && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

StatusOr<StorageAssignment> StorageAssignment::Create(const Graph& graph, const PersistentPlacements& persistent) {
  StorageAssignment made(graph);
  for (const std::unique_ptr<Node>& node : graph.nodes()) {
    made.node_index_[node.get()] = static_cast<int>(made.nodes_.size());
    made.nodes_.push_back(node.get());
    made.rules_.push_back(node->def().aliases ? node->def().aliases(*node) : std::vector<AliasRule>());
  }
  RETURN_IF_ERROR(made.AddPersistent(persistent));
  made.AddTransient();
  made.PlaceViews();
  made.PackBuckets();
  made.ElideNodes();
  made.PlaceUpdates();
  return made;
}

Status StorageAssignment::Pin(const Value* value, const Placement* placement) {
  if (placement == nullptr || placement->bytes != value->type().bytes()) {
    return InternalError(
        "'" + value->name() + "' (" + ToString(value->type()) + ", " + std::to_string(value->type().bytes()) +
        " bytes) of graph '" + graph_->name() + "' has " +
        (placement == nullptr ? "no place" : "a place of " + std::to_string(placement->bytes) + " bytes") +
        " in the persistent region; place all graphs of a program together");
  }
  const int storage = AddStorage(placement->bytes);
  storages_.back().pinned = true;
  storages_.back().place = *placement;
  values_.push_back(value);
  ranges_[value] = {storage, 0, placement->bytes};
  return OkStatus();
}

Status StorageAssignment::AddPersistent(const PersistentPlacements& persistent) {
  std::unordered_map<std::string, const Placement*> states;
  for (const auto& [name, placement] : persistent.states) states[name] = &placement;
  std::unordered_map<const Value*, const Placement*> constants;
  for (const auto& [value, placement] : persistent.constants) constants[value] = &placement;
  const auto find = [](const auto& map, const auto& key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : found->second;
  };
  for (const Value* state : graph_->states()) RETURN_IF_ERROR(Pin(state, find(states, state->name())));
  for (const Value* constant : graph_->constants()) RETURN_IF_ERROR(Pin(constant, find(constants, constant)));
  return OkStatus();
}

void StorageAssignment::AddTransient() {
  const auto add = [this](const Value* value) {
    values_.push_back(value);
    ranges_[value] = {AddStorage(value->type().bytes()), 0, value->type().bytes()};
  };
  for (const Value* input : graph_->inputs()) add(input);
  for (const Node* node : nodes_) {
    for (const Value* output : node->outputs()) {
      if (output != nullptr) add(output);
    }
  }
}

int StorageAssignment::AddStorage(size_t bytes) {
  storages_.push_back({});
  storages_.back().bytes = bytes;
  return storages() - 1;
}

StorageRange StorageAssignment::Resolve(StorageRange range) const {
  while (At(range.storage).parent >= 0) {
    range.offset += At(range.storage).parent_offset;
    range.storage = At(range.storage).parent;
  }
  return range;
}

StorageRange StorageAssignment::Of(const Value* value) const { return Resolve(ranges_.at(value)); }

void StorageAssignment::Merge(int inner, int outer, size_t offset) {
  CHECK(inner != outer && IsRoot(inner) && IsRoot(outer) && !At(inner).pinned);
  CHECK(offset + Bytes(inner) <= Bytes(outer));
  storages_[static_cast<size_t>(inner)].parent = outer;
  storages_[static_cast<size_t>(inner)].parent_offset = offset;
}

bool StorageAssignment::OwnsItsStorage(const Value* value) const {
  const StorageRange range = Of(value);
  return value->kind() == ValueKind::kIntermediate && range.offset == 0 && range.bytes == Bytes(range.storage) &&
         Persistent(range.storage) == nullptr;
}

bool StorageAssignment::IsView(const AliasRule& rule, const Node& node) const {
  const Value* in = node.input(static_cast<size_t>(rule.input));
  const Value* out = node.output(static_cast<size_t>(rule.output));
  if (rule.kind != Kind::kView || in == nullptr || out == nullptr) return false;
  const StorageRange from = Of(in);
  const StorageRange to = Of(out);
  return from.storage == to.storage && from.offset + static_cast<size_t>(rule.offset) == to.offset;
}

bool StorageAssignment::IsPacked(const AliasRule& rule, const Node& node) const {
  const Value* in = node.input(static_cast<size_t>(rule.input));
  const Value* out = node.output(static_cast<size_t>(rule.output));
  if (rule.kind != Kind::kPack || in == nullptr || out == nullptr) return false;
  const StorageRange from = Of(in);
  const StorageRange to = Of(out);
  return from.storage == to.storage && to.offset + static_cast<size_t>(rule.offset) == from.offset;
}

bool StorageAssignment::UpdatesInPlace(const Value* state) const {
  const StorageRange old = Of(state);
  const StorageRange now = Of(state->update());
  return old.storage == now.storage && old.offset == now.offset;
}

void StorageAssignment::PlaceViews() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const AliasRule& rule : rules_[i]) {
      const Value* in = nodes_[i]->input(static_cast<size_t>(rule.input));
      const Value* out = nodes_[i]->output(static_cast<size_t>(rule.output));
      if (rule.kind != Kind::kView || in == nullptr || out == nullptr || !OwnsItsStorage(out)) continue;
      const size_t offset = static_cast<size_t>(rule.offset);
      const StorageRange from = Of(in);
      if (offset + out->type().bytes() > from.bytes) continue;
      Merge(Of(out).storage, from.storage, from.offset + offset);
    }
  }
}

void StorageAssignment::PackBuckets() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const AliasRule& rule : rules_[i]) {
      const Value* in = nodes_[i]->input(static_cast<size_t>(rule.input));
      const Value* out = nodes_[i]->output(static_cast<size_t>(rule.output));
      if (rule.kind != Kind::kPack || in == nullptr || out == nullptr || !OwnsItsStorage(in)) continue;
      const StorageRange to = Of(out);
      const StorageRange from = Of(in);
      if (from.storage == to.storage) continue;
      Merge(from.storage, to.storage, to.offset + static_cast<size_t>(rule.offset));
    }
  }
}

void StorageAssignment::ElideNodes() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = *nodes_[i];
    std::set<int> viewed;
    bool all_packed = true;
    bool packs = false;
    for (const AliasRule& rule : rules_[i]) {
      if (IsView(rule, node)) viewed.insert(rule.output);
      if (rule.kind != Kind::kPack) continue;
      packs = true;
      all_packed = all_packed && IsPacked(rule, node);
    }
    const auto wanted =
        std::count_if(node.outputs().begin(), node.outputs().end(), [](auto* out) { return out != nullptr; });
    const bool views_all = wanted > 0 && viewed.size() == static_cast<size_t>(wanted);
    const bool fixed = node.def().collective || node.def().side_effect;
    elided_.push_back(!fixed && (views_all || (packs && all_packed && wanted == 1)));
  }
}

void StorageAssignment::PlaceUpdates() {
  std::vector<std::vector<const Value*>> values_in(storages_.size());
  for (const Value* value : values_) values_in[static_cast<size_t>(Of(value).storage)].push_back(value);
  std::set<const Value*> read_at_end(graph_->outputs().begin(), graph_->outputs().end());
  for (const Value* state : graph_->states()) {
    if (state->update() != nullptr && !UpdatesInPlace(state)) read_at_end.insert(state->update());
  }
  for (const Value* state : graph_->states()) {
    if (state->update() == nullptr || !MayUpdateInPlace(state, values_in, read_at_end)) continue;
    Merge(Of(state->update()).storage, Of(state).storage, 0);
  }
}

bool StorageAssignment::MayUpdateInPlace(const Value* state, const std::vector<std::vector<const Value*>>& values_in,
                                         const std::set<const Value*>& read_at_end) const {
  const Value* update = state->update();
  if (!OwnsItsStorage(update)) return false;
  int first_writer = static_cast<int>(nodes_.size());
  const int fresh = Of(update).storage;
  for (const Value* value : values_in[static_cast<size_t>(fresh)]) {
    if (value->kind() != ValueKind::kIntermediate) return false;
    const int writer = IndexOf(value->producer());
    if (!IsElided(writer)) first_writer = std::min(first_writer, writer);
  }
  const int old = Of(state).storage;
  for (const Value* value : values_in[static_cast<size_t>(old)]) {
    if (read_at_end.count(value) != 0) return false;
    for (const Node* consumer : value->consumers()) {
      const int reader = IndexOf(consumer);
      if (IsElided(reader) || reader < first_writer) continue;
      if (reader > first_writer || !WritesInPlace(reader, old, fresh)) return false;
    }
  }
  return true;
}

// Every input of the node that lies in the state's storage is one that its new value may overwrite exactly.
bool StorageAssignment::WritesInPlace(int node, int state_storage, int update_storage) const {
  const Node& writer = *nodes_[static_cast<size_t>(node)];
  const StorageRange whole{state_storage, 0, Bytes(state_storage)};
  for (size_t i = 0; i < writer.inputs().size(); ++i) {
    const Value* input = writer.input(i);
    if (input == nullptr || !Overlap(Of(input), whole)) continue;
    const auto& rules = rules_[static_cast<size_t>(node)];
    const bool allowed = std::any_of(rules.begin(), rules.end(), [&](const AliasRule& rule) {
      const Value* out = writer.output(static_cast<size_t>(rule.output));
      return rule.kind == Kind::kInPlace && static_cast<size_t>(rule.input) == i && out != nullptr &&
             Of(out).storage == update_storage && out->type().bytes() == whole.bytes && Of(input).offset == 0 &&
             Of(input).bytes == whole.bytes;
    });
    if (!allowed) return false;
  }
  return true;
}

}  // namespace onnxtrain
